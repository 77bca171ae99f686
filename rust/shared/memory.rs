//! Memory: what this process may still get, and allocations that are refused instead of ending the process.
//!
//! Whatever grows with a number a user chose is *forecast* first ([`check`], [`charge`]) and then *reserved*
//! ([`reserved`], [`filled`], [`gathered`]): a refusal is an [`Error::TooLarge`] with the bytes needed and allowed. Rust ends the
//! process when an ordinary allocation fails, and a caller's session with it.
//!
//! [`available`] is the least of what the system, the process's address space (`RLIMIT_AS`) and every control group above the
//! process leave to it; a group's reclaimable file pages count as free.
//!
//! Source: Linux, `Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/memory.rst`; getrlimit(2); proc(5).

use crate::monitor::Monitor;
use crate::{Error, Result};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Address space that is left to stacks of threads and to the allocator's own needs.
const HEADROOM: u64 = 64 << 20;
/// What is assumed of a system that does not say.
const UNKNOWN: u64 = 1 << 62;
/// Milliseconds for which an answer of the system is kept: asking takes longer than a small count.
const FRESH: u64 = 1000;

/// Whence milliseconds are counted.
pub static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Bytes this process could still get; the answer may be a second old.
pub fn available() -> u64 {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    static FOUND: AtomicU64 = AtomicU64::new(0);
    let now = BEGAN.elapsed().as_millis() as u64 + 1;
    let asked = ASKED.load(Relaxed);
    if asked == 0 || now - asked.min(now) > FRESH {
        FOUND.store(available_now(), Relaxed);
        ASKED.store(now, Relaxed);
    }
    FOUND.load(Relaxed)
}

/// Bytes this process could get at this moment.
pub fn available_now() -> u64 {
    available_under(Path::new("/")).min(address_space())
}

/// What a system and its control groups leave to this process, read from the files under `root`.
pub fn available_under(root: &Path) -> u64 {
    let system = field(&root.join("proc/meminfo"), "MemAvailable:").map_or(UNKNOWN, |kilobytes| kilobytes << 10);
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mounts = root.join("sys/fs/cgroup");
    let left = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        match controllers {
            "" => Some(["", "unified"].map(|mount| group(&mounts.join(mount), path, &V2)).into_iter().min()?),
            some if some.split(',').any(|name| name == "memory") => Some(group(&mounts.join("memory"), path, &V1)),
            _ => None,
        }
    });
    // In a container the process's path may be that of the host, which the container does not see: its own root is asked too.
    left.chain([level(&mounts, &V2), level(&mounts.join("memory"), &V1)]).fold(system, u64::min)
}

/// The files of one version of control groups.
struct Files {
    limit: &'static str,
    usage: &'static str,
    reclaimable: &'static str,
}

const V2: Files = Files { limit: "memory.max", usage: "memory.current", reclaimable: "inactive_file" };
const V1: Files =
    Files { limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", reclaimable: "total_inactive_file" };

/// What the group of this path and all above it leave.
fn group(mount: &Path, path: &str, files: &Files) -> u64 {
    // A path outside the own namespace begins with "..": it is not one under this mount.
    let named = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let path: PathBuf = Path::new(path).components().filter(named).collect();
    path.ancestors().map(|folder| level(&mount.join(folder), files)).fold(UNKNOWN, u64::min)
}

/// What one group leaves.
fn level(folder: &Path, files: &Files) -> u64 {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let (Some(limit), Some(usage)) = (number(files.limit), number(files.usage)) else { return UNKNOWN };
    let reclaimable = field(&folder.join("memory.stat"), files.reclaimable).unwrap_or(0);
    limit.saturating_sub(usage.saturating_sub(reclaimable)).max(1)
}

/// The number after a word at the beginning of a line.
fn field(file: &Path, word: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(word))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// What is left of the address space, if it is limited.
#[cfg(target_os = "linux")]
fn address_space() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the call writes one `rlimit`, which is ours.
    if unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
        return UNKNOWN;
    }
    let used = field(Path::new("/proc/self/status"), "VmSize:").unwrap_or(0) << 10;
    limit.rlim_cur.saturating_sub(used).saturating_sub(HEADROOM).max(1)
}

#[cfg(not(target_os = "linux"))]
fn address_space() -> u64 {
    UNKNOWN
}

/// Refuses what needs more than a limit.
///
/// # Errors
/// [`Error::TooLarge`] with both.
pub fn check(what: &'static str, needed: u128, limit: impl Into<u128>) -> Result<()> {
    let limit = limit.into();
    if needed > limit { Err(Error::TooLarge { what, needed, limit }) } else { Ok(()) }
}

/// Values that are filled in at once.
const PART: usize = 1 << 22;
/// Bytes below which nobody is asked.
const SMALL: u128 = 1 << 20;

/// Refuses what needs more than this process could get.
///
/// # Errors
/// [`Error::TooLarge`] with both.
pub fn charge(what: &'static str, needed: u128) -> Result<()> {
    if needed <= SMALL { Ok(()) } else { check(what, needed, available()) }
}

/// An empty vector with room for `len` values.
///
/// # Errors
/// [`Error::TooLarge`] if the process could not get the memory, or the system does not give it.
pub fn reserved<T>(len: impl TryInto<u128>, what: &'static str) -> Result<Vec<T>> {
    let len = len.try_into().unwrap_or(u128::MAX);
    let needed = len.saturating_mul(size_of::<T>() as u128);
    charge(what, needed)?;
    let mut values = Vec::new();
    match usize::try_from(len).ok().and_then(|len| values.try_reserve_exact(len).ok()) {
        Some(()) => Ok(values),
        None => Err(Error::TooLarge { what, needed, limit: u128::from(available_now()) }),
    }
}

/// A vector of `len` equal values.
///
/// # Errors
/// As [`reserved`].
pub fn filled<T: Clone>(value: T, len: usize, what: &'static str) -> Result<Vec<T>> {
    let mut values = reserved(len as u128, what)?;
    values.resize(len, value);
    Ok(values)
}

/// The same, filled while the monitor is asked now and then: a large one takes seconds.
///
/// # Errors
/// As [`reserved`], and the monitor's error.
pub fn filled_patiently<T: Clone>(
    value: T,
    len: usize,
    what: &'static str,
    monitor: &mut dyn Monitor,
) -> Result<Vec<T>> {
    let mut values = reserved(len as u128, what)?;
    while values.len() < len {
        monitor.tick(0, 0)?;
        values.resize(len.min(values.len() + PART), value.clone());
    }
    Ok(values)
}

/// A vector of the `len` values of an iterator.
///
/// # Errors
/// As [`reserved`].
pub fn gathered<T>(values: impl Iterator<Item = T>, len: usize, what: &'static str) -> Result<Vec<T>> {
    let mut room = reserved(len as u128, what)?;
    room.extend(values.take(len));
    Ok(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_memory_than_there_is_is_refused_and_not_a_crash() {
        for len in [u128::MAX, 1 << 64, 1 << 61, 1 << 45] {
            assert!(matches!(reserved::<u64>(len, "a test"), Err(Error::TooLarge { .. })));
        }
        assert!(
            matches!(filled(0u8, usize::MAX, "a test"), Err(Error::TooLarge { needed, limit, .. }) if needed > limit)
        );
        assert_eq!(filled(7u16, 3, "a test"), Ok(vec![7; 3]));
        assert_eq!(gathered(1.., 2, "a test"), Ok(vec![1, 2]));
        assert_eq!(check("a test", 5, 4u64), Err(Error::TooLarge { what: "a test", needed: 5, limit: 4 }));
        assert_eq!(check("a test", 4, 4u64), Ok(()));
    }

    /// A root with the files of a system, in a folder that goes when it is dropped.
    struct System(std::path::PathBuf);

    impl System {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("quincunx-memory-{}-{name}", std::process::id()));
            for (file, text) in files {
                let file = root.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            Self(root)
        }
    }

    impl Drop for System {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal: 900 kB\nMemAvailable:    800 kB\n");

    #[test]
    fn the_system_alone_leaves_what_it_says() {
        assert_eq!(available_under(&System::new("none", &[]).0), UNKNOWN);
        assert_eq!(available_under(&System::new("alone", &[MEMINFO]).0), 800 << 10);
    }

    #[test]
    fn the_process_s_own_group_and_all_above_it_bind() {
        let v2 = |name, job: &str, slice: &str| {
            let files = [
                MEMINFO,
                ("proc/self/cgroup", "0::/slice/job\n"),
                ("sys/fs/cgroup/slice/memory.max", slice),
                ("sys/fs/cgroup/slice/memory.current", "1000"),
                ("sys/fs/cgroup/slice/job/memory.max", job),
                ("sys/fs/cgroup/slice/job/memory.current", "500"),
                ("sys/fs/cgroup/slice/job/memory.stat", "anon 7\ninactive_file 100\n"),
                ("sys/fs/cgroup/slice/other/memory.max", "1"),
                ("sys/fs/cgroup/slice/other/memory.current", "1"),
            ];
            available_under(&System::new(name, &files).0)
        };
        assert_eq!(v2("own", "5000", "max"), 4600, "the job's own limit, its reclaimable pages free");
        assert_eq!(v2("above", "max", "3000"), 2000, "the limit of the slice above it");
        assert_eq!(v2("both", "5000", "3000"), 2000);
        assert_eq!(v2("neither", "max", "max"), 800 << 10);
        assert_eq!(v2("over", "300", "max"), 1, "never zero: a limit is at least one byte");
    }

    #[test]
    fn groups_of_the_first_version_and_of_containers_bind_too() {
        let v1 = [
            MEMINFO,
            ("proc/self/cgroup", "3:cpu,cpuacct:/x\n2:memory:/batch/7\n1:name=systemd:/y\n"),
            ("sys/fs/cgroup/memory/batch/7/memory.limit_in_bytes", "9000"),
            ("sys/fs/cgroup/memory/batch/7/memory.usage_in_bytes", "4000"),
            ("sys/fs/cgroup/memory/batch/7/memory.stat", "inactive_file 1\ntotal_inactive_file 1000\n"),
            ("sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "1"),
        ];
        assert_eq!(available_under(&System::new("v1", &v1).0), 6000);
        let container = [
            MEMINFO,
            ("proc/self/cgroup", "0::/../../host/path\n"),
            ("sys/fs/cgroup/memory.max", "70000"),
            ("sys/fs/cgroup/memory.current", "10000"),
        ];
        assert_eq!(available_under(&System::new("container", &container).0), 60_000);
    }
}
