//! Says by which profile the extension is built: cargo tells a build script no more than the folder, `target/PROFILE/build/...`.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let profile = Path::new(&out).ancestors().nth(3).and_then(|folder| folder.file_name()?.to_str());
    println!("cargo::rustc-env=QUINCUNX_PROFILE={}", profile.unwrap_or("unknown"));
}
