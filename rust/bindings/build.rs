//! Says by which profile the extension is built: of one that inherits from `release` cargo tells a build script no more than that,
//! but for the folder, `target/PROFILE/build/...`.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let built = Path::new(&out).ancestors().find(|folder| folder.ends_with("build"));
    let profile = built.and_then(|folder| folder.parent()?.file_name()?.to_str());
    println!("cargo::rustc-env=QUINCUNX_PROFILE={}", profile.unwrap_or("unknown"));
}
