//! One job at a time on a checkpoint.
//!
//! Beside a checkpoint lies, while a job works on it, `<name>.lock`: it is locked by the system (`flock`), so that the lock
//! ends with its process however that ends, and says who holds it. A child of a fork inherits such a lock and may outlive its
//! parent; a lock whose holder is no longer alive is therefore taken over, if its number is one of the same boot of the same
//! machine and of the same namespace of processes: a container cannot see who lives in another. Where the file system knows no locks, jobs go on
//! without.
//!
//! Source: flock(2).

use crate::{Error, Result};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// How often a lock file that vanishes between two calls is looked for again. Larger: only a longer wait for what hardly happens.
const TRIES: usize = 100;

/// The right to read and write a checkpoint, as long as it lives.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// The right to a checkpoint.
    ///
    /// # Errors
    /// [`Error::File`] if another job holds it, with who that is, or its folder cannot be written to.
    pub fn hold(checkpoint: &Path) -> Result<Self> {
        let fault = |reason: String| Error::File { what: "checkpoint", path: checkpoint.display().to_string(), reason };
        let Some(name) = checkpoint.file_name() else { return Err(fault("is not the name of a file".into())) };
        let mut own = name.to_os_string();
        own.push(".lock");
        let path = checkpoint.with_file_name(own);
        for _ in 0..TRIES {
            let mut file = open_own(OpenOptions::new().read(true).write(true).create(true), &path)
                .map_err(|error| fault(format!("cannot be locked: {error}")))?;
            match file.try_lock() {
                Ok(()) | Err(TryLockError::Error(_)) => {}
                Err(TryLockError::WouldBlock) => {
                    let holder = LockHolder::read(&mut file);
                    if holder.is_gone() {
                        let _ = fs::remove_file(&path);
                        continue;
                    }
                    return Err(fault(format!("is in use by {}; wait for it, stop it, or name another", holder.0)));
                }
            }
            // Whoever held it before may have taken the file away in between.
            if is_at(&file, &path) {
                let _ = file.set_len(0);
                let _ = writeln!(file, "{}", LockHolder::own().0);
                return Ok(Self { path, _file: file });
            }
        }
        Err(fault("is locked and unlocked again and again by others".into()))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // while it is locked: nobody else has begun with it
    }
}

/// Opens a file for its owner alone, and not what a link leads to.
pub fn open_own(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Without waiting: a pipe of that name would keep the caller for ever.
        options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    let file = options.open(path).map_err(|error| match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => std::io::Error::new(ErrorKind::InvalidInput, "it is a link"),
        _ => error,
    })?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::new(ErrorKind::InvalidInput, "it is not a file"));
    }
    Ok(file)
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |found: fs::Metadata| (found.dev(), found.ino());
    file.metadata().map(place).ok() == fs::symlink_metadata(path).map(place).ok()
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Who holds a lock, in words: `process 123 on name (namespace)`.
struct LockHolder(String);

impl LockHolder {
    fn own() -> Self {
        Self(format!("process {} on {} ({})", std::process::id(), host(), namespace()))
    }

    fn read(file: &mut File) -> Self {
        let mut text = String::new();
        let _ = file.take(300).read_to_string(&mut text);
        let text = text.trim();
        Self(if text.is_empty() { "another process".into() } else { text.into() })
    }

    /// Whether the process is not there any more: known only where its number means the same to both.
    fn is_gone(&self) -> bool {
        let mut words = self.0.split(' ').skip(1);
        let (Some(Ok(process)), Some("on"), Some(name), Some(space)) =
            (words.next().map(str::parse::<u32>), words.next(), words.next(), words.next())
        else {
            return false;
        };
        let processes = Path::new("/proc");
        name == host()
            && space == format!("({})", namespace())
            && processes.join("self").exists()
            && !processes.join(process.to_string()).exists()
    }
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = name.trim().chars().filter(|letter| letter.is_ascii_graphic()).take(64).collect();
    if name.is_empty() { "this machine".into() } else { name }
}

/// Within what a process has its number: a boot of a machine, and a namespace there, as containers have them.
fn namespace() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{}:{}", boot.trim(), inode(Path::new("/proc/self/ns/pid")).unwrap_or_default())
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|found| found.ino())
}

#[cfg(not(unix))]
fn inode(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_a_lock_and_the_other_hears_who() {
        let path = std::env::temp_dir().join(format!("quincunx-lock-{}", std::process::id()));
        let held = Lock::hold(&path).unwrap();
        let refused = Lock::hold(&path).unwrap_err().to_string();
        assert!(refused.contains(&format!("in use by process {} on ", std::process::id())), "{refused}");
        drop(held);
        assert!(!held_file(&path).exists());
        drop(Lock::hold(&path).unwrap());
        // A lock that somebody inherited from a process that is gone.
        let file = File::create(held_file(&path)).unwrap();
        file.try_lock().unwrap();
        let gone = |host: &str, space: &str| {
            fs::write(held_file(&path), format!("process {} on {host}{space}\n", u32::MAX)).unwrap();
        };
        // One of another machine, namespace or boot is never judged.
        let (own, other) = (format!(" ({})", namespace()), format!(" ({}7)", namespace()));
        for (host, space) in [(host(), &other), (host() + "x", &own), (host(), &String::new())] {
            gone(&host, space);
            let refused = Lock::hold(&path).unwrap_err().to_string();
            assert!(refused.contains(&format!("in use by process {}", u32::MAX)), "{refused}");
        }
        gone(&host(), &own);
        if Path::new("/proc/self").exists() {
            drop(Lock::hold(&path).unwrap());
        }
        fs::write(held_file(&path), "left by a job that was killed").unwrap();
        drop(Lock::hold(&path).unwrap());
    }

    fn held_file(path: &Path) -> PathBuf {
        path.with_file_name(format!("{}.lock", path.file_name().unwrap().display()))
    }

    #[test]
    #[cfg(unix)]
    fn what_a_link_leads_to_is_left_alone() {
        let path = std::env::temp_dir().join(format!("quincunx-link-{}", std::process::id()));
        let target = path.with_extension("target");
        fs::write(&target, "mine").unwrap();
        std::os::unix::fs::symlink(&target, held_file(&path)).unwrap();
        let refused = Lock::hold(&path).unwrap_err().to_string();
        assert!(refused.contains("it is a link"), "{refused}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
        fs::remove_file(held_file(&path)).unwrap();
        fs::remove_file(target).unwrap();
    }
}
