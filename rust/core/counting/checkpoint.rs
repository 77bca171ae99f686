//! Checkpoints of long evaluations: written whole or not at all, and tied to their job.
//!
//! A file holds, in little-endian 64-bit words: a magic word, the job's fingerprint, the residues that are finished, and at most
//! one working vector with its place (first point, lanes, step). The last word is a checksum of all before it. A new file is
//! written beside the old one, flushed to the disk and renamed over it, so a crash at any moment leaves a complete checkpoint.

use crate::{Error, Result};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MAGIC: u64 = u64::from_le_bytes(*b"qnxckp01");
/// Seconds between two checkpoints, at least.
const INTERVAL: Duration = Duration::from_secs(30);
/// Writing may take at most one part in so many of the time.
const SHARE: u32 = 10;

/// A working vector and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Index of the group's first point.
    pub first: usize,
    /// Lanes side by side.
    pub lanes: usize,
    /// Steps done.
    pub step: u64,
    /// The elements' words.
    pub words: Vec<u64>,
}

/// What a checkpoint holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The finished residues: index of the point and its residue.
    pub finished: Vec<(usize, u64)>,
    /// The vector that was being worked on.
    pub vector: Option<Vector>,
}

/// A job's fingerprint: two jobs with different words have, for all that matters, different fingerprints.
pub fn fingerprint(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(MAGIC, mix)
}

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// Writes checkpoints of one job to one place, not too often.
#[derive(Clone, Debug)]
pub struct Keeper {
    path: PathBuf,
    job: u64,
    interval: Duration,
    next: Instant,
}

impl Keeper {
    /// A keeper for the job with this fingerprint.
    pub fn new(path: &Path, job: u64) -> Self {
        Self { path: path.to_path_buf(), job, interval: INTERVAL, next: Instant::now() + INTERVAL }
    }

    /// The same with another interval; zero saves at every step.
    pub fn every(mut self, interval: Duration) -> Self {
        (self.interval, self.next) = (interval, Instant::now() + interval);
        self
    }

    /// Whether it is time to save.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// Reads the checkpoint, if there is one.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read, is damaged, or belongs to another job.
    pub fn load(&self) -> Result<Option<Saved>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            // Without its folder it could not be saved later: better said now than after the first half minute.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && self.has_folder() => return Ok(None),
            Err(error) => return Err(self.fault(error)),
        };
        let mut reader = Words { inner: BufReader::with_capacity(1 << 20, file), hash: MAGIC };
        let read = |error| self.fault(error);
        if reader.word().map_err(read)? != MAGIC {
            return Err(self.fault("is not a checkpoint of this version of quincunx"));
        }
        if reader.word().map_err(read)? != self.job {
            return Err(
                self.fault("belongs to another job (other lattice, activity or primes); remove it or name another")
            );
        }
        let mut saved = Saved::default();
        for _ in 0..reader.word().map_err(read)? {
            saved.finished.push((reader.word().map_err(read)? as usize, reader.word().map_err(read)?));
        }
        if reader.word().map_err(read)? == 1 {
            let [first, lanes, step, len] = reader.array().map_err(read)?;
            let mut words = Vec::new();
            words.try_reserve_exact(len as usize).map_err(|error| self.fault(error))?;
            for _ in 0..len {
                words.push(reader.word().map_err(read)?);
            }
            saved.vector = Some(Vector { first: first as usize, lanes: lanes as usize, step, words });
        }
        let hash = reader.hash;
        if reader.word().map_err(read)? != hash {
            return Err(self.fault("is damaged: its checksum does not fit its content"));
        }
        if reader.inner.read(&mut [0]).map_err(read)? > 0 {
            return Err(self.fault("is damaged: it is longer than its content"));
        }
        Ok(Some(saved))
    }

    /// Saves residues and, where one is given, a vector `(first, lanes, step, words)`.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be written; an older checkpoint is then still whole.
    pub fn save(&mut self, finished: &[(usize, u64)], vector: Option<(usize, usize, u64, &[u64])>) -> Result<()> {
        let start = Instant::now();
        let mut name = self.path.file_name().unwrap_or_default().to_os_string();
        name.push(".part");
        let part = self.path.with_file_name(name);
        self.write(&part, finished, vector).and_then(|()| std::fs::rename(&part, &self.path)).map_err(|error| {
            let _ = std::fs::remove_file(&part);
            self.fault(error)
        })?;
        self.next = Instant::now()
            + self.interval.max(if self.interval.is_zero() { self.interval } else { start.elapsed() * SHARE });
        Ok(())
    }

    fn write(
        &self,
        part: &Path,
        finished: &[(usize, u64)],
        vector: Option<(usize, usize, u64, &[u64])>,
    ) -> std::io::Result<()> {
        let mut writer = Words { inner: BufWriter::with_capacity(1 << 20, File::create(part)?), hash: MAGIC };
        writer.put([MAGIC, self.job, finished.len() as u64])?;
        for &(index, residue) in finished {
            writer.put([index as u64, residue])?;
        }
        writer.put([u64::from(vector.is_some())])?;
        if let Some((first, lanes, step, words)) = vector {
            writer.put([first as u64, lanes as u64, step, words.len() as u64])?;
            writer.put(words.iter().copied())?;
        }
        let hash = writer.hash;
        writer.put([hash])?;
        writer.inner.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
    }

    /// Removes the checkpoint of a finished job.
    ///
    /// # Errors
    /// [`Error::File`] if it is there and cannot be removed.
    pub fn remove(&self) -> Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(self.fault(error)),
            _ => Ok(()),
        }
    }

    fn has_folder(&self) -> bool {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        self.path.file_name().is_some() && (folder.as_os_str().is_empty() || folder.is_dir())
    }

    fn fault(&self, reason: impl ToString) -> Error {
        Error::File { what: "checkpoint", path: self.path.display().to_string(), reason: reason.to_string() }
    }
}

/// Words going by, hashed on their way.
struct Words<T> {
    inner: T,
    hash: u64,
}

impl<T: Read> Words<T> {
    fn word(&mut self) -> std::io::Result<u64> {
        let mut bytes = [0; 8];
        self.inner.read_exact(&mut bytes)?;
        let word = u64::from_le_bytes(bytes);
        self.hash = mix(self.hash, word);
        Ok(word)
    }

    fn array<const N: usize>(&mut self) -> std::io::Result<[u64; N]> {
        let mut words = [0; N];
        for word in &mut words {
            *word = self.word()?;
        }
        Ok(words)
    }
}

impl<T: Write> Words<T> {
    fn put(&mut self, words: impl IntoIterator<Item = u64>) -> std::io::Result<()> {
        for word in words {
            self.hash = mix(self.hash, word);
            self.inner.write_all(&word.to_le_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("quincunx-{}-{name}", std::process::id()))
    }

    #[test]
    fn what_was_saved_comes_back() {
        let path = place("round-trip");
        let mut keeper = Keeper::new(&path, 7);
        assert_eq!(keeper.load(), Ok(None));
        keeper.save(&[(3, 9)], Some((4, 2, 5, &[1, 2, 3]))).unwrap();
        let vector = Some(Vector { first: 4, lanes: 2, step: 5, words: vec![1, 2, 3] });
        assert_eq!(keeper.load(), Ok(Some(Saved { finished: vec![(3, 9)], vector })));
        keeper.remove().unwrap();
        assert_eq!(keeper.load(), Ok(None));
    }

    #[test]
    fn a_damaged_or_foreign_file_is_refused_and_kept() {
        let path = place("damaged");
        let mut keeper = Keeper::new(&path, 7);
        keeper.save(&[(0, 1), (1, 2)], None).unwrap();
        let foreign = Keeper::new(&path, 8).load().unwrap_err();
        assert!(foreign.to_string().contains("another job"), "{foreign}");
        let whole = std::fs::read(&path).unwrap();
        for position in [0, 30, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[position] ^= 4;
            std::fs::write(&path, &bytes).unwrap();
            assert!(keeper.load().is_err(), "byte {position}");
        }
        for bytes in [&whole[..whole.len() - 9], &[&whole[..], &[0]].concat()] {
            std::fs::write(&path, bytes).unwrap();
            assert!(keeper.load().is_err());
        }
        keeper.remove().unwrap();
    }

    #[test]
    fn a_place_where_nothing_can_be_saved_is_refused_before_any_work() {
        let missing = place("no-such-folder").join("checkpoint");
        assert!(Keeper::new(&missing, 7).load().unwrap_err().to_string().contains("no-such-folder"));
        assert!(Keeper::new(Path::new(""), 7).load().is_err());
        assert_eq!(Keeper::new(Path::new("a checkpoint that is not there"), 7).load(), Ok(None));
    }
}
