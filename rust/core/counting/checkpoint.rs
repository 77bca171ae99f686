//! Checkpoints of long evaluations: written whole or not at all, and tied to their job.
//!
//! A file holds, in little-endian 64-bit words: a magic word, the job's fingerprint, the residues that are finished, and the
//! working vectors in hand with their places (first point, lanes, step). The last word is a checksum of all before it. A new
//! file is written beside the old one, flushed to the disk and renamed over it, so a crash at any moment leaves a complete
//! checkpoint.

use crate::numeric::buffer::Buffer;
use crate::{Error, Result};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MAGIC: u64 = u64::from_le_bytes(*b"qnxckp02");
/// Seconds between two checkpoints, at least.
const INTERVAL: Duration = Duration::from_secs(30);
/// Writing may take at most one part in so many of the time.
const SHARE: u32 = 10;

/// The working vector of a group of neighbouring points, and where it stands.
#[derive(Debug)]
pub struct Vector {
    /// Index of the group's first point.
    pub first: usize,
    /// Lanes side by side: word `lanes * state + lane`.
    pub lanes: usize,
    /// Steps done.
    pub step: u64,
    /// The elements' words.
    pub words: Buffer<u64>,
}

/// What a checkpoint holds.
#[derive(Debug, Default)]
pub struct Saved {
    /// The finished residues: index of the point and its residue.
    pub finished: Vec<(usize, u64)>,
    /// The vectors that were being worked on.
    pub vectors: Vec<Vector>,
}

/// The residues of a job, as far as they are known.
#[derive(Clone, Debug)]
pub struct Found(pub Vec<Option<u64>>);

impl Found {
    /// None of `points` residues.
    pub fn new(points: usize) -> Self {
        Self(vec![None; points])
    }

    /// Adds residues with the indices of their points.
    pub fn extend(&mut self, residues: impl IntoIterator<Item = (usize, u64)>) {
        residues.into_iter().for_each(|(index, residue)| self.0[index] = Some(residue));
    }

    /// The residues that are known, with the indices of their points.
    pub fn finished(&self) -> Vec<(usize, u64)> {
        (0..).zip(&self.0).filter_map(|(index, residue)| Some((index, (*residue)?))).collect()
    }

    /// All residues, once they are known.
    pub fn all(self) -> Vec<u64> {
        self.0.into_iter().flatten().collect()
    }
}

/// A job's fingerprint: two jobs with different words have, for all that matters, different fingerprints.
pub fn fingerprint(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(MAGIC, mix)
}

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// The place of one job's checkpoint, written not too often.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    path: PathBuf,
    job: u64,
    interval: Duration,
    next: Instant,
}

impl Checkpoint {
    /// The checkpoint of the job with this fingerprint.
    pub fn new(path: &Path, job: u64) -> Self {
        Self { path: path.to_path_buf(), job, interval: INTERVAL, next: Instant::now() + INTERVAL }
    }

    /// The same with another interval; zero saves at every step.
    pub fn every(mut self, interval: Option<Duration>) -> Self {
        if let Some(interval) = interval {
            (self.interval, self.next) = (interval, Instant::now() + interval);
        }
        self
    }

    /// When it is time to save.
    pub fn due(&self) -> Instant {
        self.next
    }

    /// Reads the checkpoint of a job of `points` points with vectors of `states` states, if there is one. Without `states`
    /// the vectors are passed over.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read, is damaged, or belongs to another job.
    pub fn load(&self, points: usize, states: Option<usize>) -> Result<Option<Saved>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            // Without its folder it could not be saved later: better said now than after the first half minute.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && self.has_folder() => return Ok(None),
            Err(error) => return Err(self.fault(error)),
        };
        let mut reader = Hashed { inner: BufReader::with_capacity(1 << 20, file), hash: MAGIC };
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
            let [index, residue] = reader.array().map_err(read)?;
            if index >= points as u64 {
                return Err(self.fault("is damaged: it has residues of points that are not there"));
            }
            saved.finished.push((index as usize, residue));
        }
        for _ in 0..reader.word().map_err(read)? {
            let [first, lanes, step, len] = reader.array().map_err(read)?;
            let Some(states) = states else {
                for _ in 0..len {
                    reader.word().map_err(read)?;
                }
                continue;
            };
            if first >= points as u64 || !matches!(lanes, 1 | 2 | 4 | 8) || len != states as u64 * lanes {
                return Err(self.fault("is damaged: it has a vector that does not fit the job"));
            }
            let mut words = Buffer::zeroed(len as usize)?;
            for word in words.iter_mut() {
                *word = reader.word().map_err(read)?;
            }
            saved.vectors.push(Vector { first: first as usize, lanes: lanes as usize, step, words });
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

    /// Saves residues and the vectors in hand.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be written; an older checkpoint is then still whole.
    pub fn save<'a>(
        &mut self,
        finished: &[(usize, u64)],
        vectors: impl ExactSizeIterator<Item = &'a Vector>,
    ) -> Result<()> {
        let start = Instant::now();
        let mut name = self.path.file_name().unwrap_or_default().to_os_string();
        name.push(".part");
        let part = self.path.with_file_name(name);
        self.write(&part, finished, vectors).and_then(|()| std::fs::rename(&part, &self.path)).map_err(|error| {
            let _ = std::fs::remove_file(&part);
            self.fault(error)
        })?;
        self.next = Instant::now()
            + self.interval.max(if self.interval.is_zero() { self.interval } else { start.elapsed() * SHARE });
        Ok(())
    }

    fn write<'a>(
        &self,
        part: &Path,
        finished: &[(usize, u64)],
        vectors: impl ExactSizeIterator<Item = &'a Vector>,
    ) -> std::io::Result<()> {
        let mut writer = Hashed { inner: BufWriter::with_capacity(1 << 20, File::create(part)?), hash: MAGIC };
        writer.put([MAGIC, self.job, finished.len() as u64])?;
        for &(index, residue) in finished {
            writer.put([index as u64, residue])?;
        }
        writer.put([vectors.len() as u64])?;
        for vector in vectors {
            writer.put([vector.first as u64, vector.lanes as u64, vector.step, vector.words.len() as u64])?;
            writer.put(vector.words.iter().copied())?;
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

/// A file of words that is hashed as it is read or written.
struct Hashed<T> {
    inner: T,
    hash: u64,
}

impl<T: Read> Hashed<T> {
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

impl<T: Write> Hashed<T> {
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
        let mut checkpoint = Checkpoint::new(&path, 7);
        assert!(checkpoint.load(9, Some(3)).unwrap().is_none());
        let vectors = [(4, 2, 5u64), (6, 1, 7)].map(|(first, lanes, step)| {
            let mut words = Buffer::zeroed(3 * lanes).unwrap();
            words.iter_mut().zip(step..).for_each(|(word, value)| *word = value);
            Vector { first, lanes, step, words }
        });
        checkpoint.save(&[(3, 9)], vectors.iter()).unwrap();
        let saved = checkpoint.load(9, Some(3)).unwrap().unwrap();
        assert_eq!(saved.finished, [(3, 9)]);
        let facts = |vector: &Vector| (vector.first, vector.lanes, vector.step, vector.words.to_vec());
        let found: Vec<_> = saved.vectors.iter().map(facts).collect();
        assert_eq!(found, [(4, 2, 5, vec![5, 6, 7, 8, 9, 10]), (6, 1, 7, vec![7, 8, 9])]);
        assert_eq!(checkpoint.load(9, None).unwrap().unwrap().vectors.len(), 0);
        for (points, states) in [(3, 3), (5, 3), (9, 2), (9, 4)] {
            assert!(checkpoint.load(points, Some(states)).is_err(), "{points} points, {states} states");
        }
        checkpoint.remove().unwrap();
        assert!(checkpoint.load(9, Some(3)).unwrap().is_none());
    }

    #[test]
    fn a_damaged_or_foreign_file_is_refused_and_kept() {
        let path = place("damaged");
        let mut checkpoint = Checkpoint::new(&path, 7);
        checkpoint.save(&[(0, 1), (1, 2)], [].iter()).unwrap();
        let foreign = Checkpoint::new(&path, 8).load(9, Some(3)).unwrap_err();
        assert!(foreign.to_string().contains("another job"), "{foreign}");
        let whole = std::fs::read(&path).unwrap();
        for position in [0, 30, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[position] ^= 4;
            std::fs::write(&path, &bytes).unwrap();
            assert!(checkpoint.load(9, Some(3)).is_err(), "byte {position}");
        }
        for bytes in [&whole[..whole.len() - 9], &[&whole[..], &[0]].concat()] {
            std::fs::write(&path, bytes).unwrap();
            assert!(checkpoint.load(9, Some(3)).is_err());
        }
        checkpoint.remove().unwrap();
    }

    #[test]
    fn a_place_where_nothing_can_be_saved_is_refused_before_any_work() {
        let missing = place("no-such-folder").join("checkpoint");
        assert!(Checkpoint::new(&missing, 7).load(9, Some(3)).unwrap_err().to_string().contains("no-such-folder"));
        assert!(Checkpoint::new(Path::new(""), 7).load(9, Some(3)).is_err());
        assert!(Checkpoint::new(Path::new("a checkpoint that is not there"), 7).load(9, Some(3)).unwrap().is_none());
    }
}
