//! Checkpoints of long evaluations: written whole or not at all, and tied to their job.
//!
//! A file holds, in little-endian 64-bit words: a magic word, the job's fingerprint, the residues that are finished, and the
//! working vectors in hand with their places (first point, lanes, step); other jobs keep their state as one vector. The last
//! word is a checksum of all before it. A new file is written beside the old one under a name of its own, for its owner
//! alone, flushed to the disk and renamed over it, so a crash at any moment leaves a complete checkpoint. One job at a time
//! works on it ([`super::lock`]).
//!
//! A file that is loaded is read once to prove its checksum. Vectors stay there until somebody works on them: a job that goes
//! on needs no more memory than one that begins, in as many lanes as its own limit allows.

use super::lock::open_own;
use super::transfer::LANES;
use crate::monitor::Progress;
use crate::numeric::buffer::Buffer;
use crate::numeric::residue::Modulus;
use crate::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// What a checkpoint begins with; another form of file has another number.
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

/// The lanes of a group as they lie in the file of a checkpoint: read when somebody works on them, and not before.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Index of the group's first point.
    pub first: usize,
    /// Lanes side by side, once they are read.
    pub lanes: usize,
    /// Steps done.
    pub step: u64,
    /// Its states.
    states: usize,
    /// The file, its name, the byte where the words begin, the lanes they have there and the first of these.
    file: Arc<Mutex<File>>,
    path: Arc<Path>,
    start: u64,
    width: usize,
    lane: usize,
}

impl Stored {
    /// Bytes once it is read.
    pub fn bytes(&self) -> usize {
        8 * self.states * self.lanes
    }

    /// The same lanes in groups of at most `most`, those of points there are.
    pub fn split(self, most: usize, points: usize) -> impl Iterator<Item = Self> {
        let (width, lanes) = (self.lanes, self.lanes.min(most));
        let part = move |lane| Self { first: self.first + lane, lanes, lane: self.lane + lane, ..self.clone() };
        (0..width).step_by(lanes).map(part).filter(move |part| part.first < points)
    }

    /// Reads it, straight into the memory it is worked on in.
    ///
    /// # Errors
    /// [`Error::TooLarge`] without that memory, [`Error::File`] if the file cannot be read any more, the progress's.
    pub fn read(&self, progress: &Progress) -> Result<Vector> {
        let mut words = Buffer::zeroed(self.states * self.lanes)?;
        let mut room = words.iter_mut();
        self.each(progress, |word| {
            if let Some(place) = room.next() {
                *place = word;
            }
            Ok(())
        })?;
        Ok(Vector { first: self.first, lanes: self.lanes, step: self.step, words })
    }

    /// Hands on its words, one after another.
    fn each(&self, progress: &Progress, mut hand: impl FnMut(u64) -> std::io::Result<()>) -> Result<()> {
        let fault = |error: std::io::Error| fault(&self.path, error);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.start)).map_err(fault)?;
        let mut reader = Hashed { inner: BufReader::with_capacity(1 << 20, &mut *file), hash: 0 };
        for state in 0..self.states {
            if state % LOOK == 0 {
                progress.check()?;
            }
            for lane in 0..self.width {
                let word = reader.word().map_err(fault)?;
                if (self.lane..self.lane + self.lanes).contains(&lane) {
                    hand(word).map_err(fault)?;
                }
            }
        }
        Ok(())
    }
}

/// States, or residues, that go by between two looks at the progress.
const LOOK: usize = 1 << 14;

/// What is saved of a group in hand: its vector, or what still lies in the file.
#[derive(Clone, Copy, Debug)]
pub enum InHand<'a> {
    /// In memory.
    Vector(&'a Vector),
    /// In the file that was loaded.
    Stored(&'a Stored),
}

impl InHand<'_> {
    /// First point, lanes and step.
    pub fn place(&self) -> (usize, usize, u64) {
        match self {
            Self::Vector(vector) => (vector.first, vector.lanes, vector.step),
            Self::Stored(stored) => (stored.first, stored.lanes, stored.step),
        }
    }

    /// Bytes of its words.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Vector(vector) => 8 * vector.words.len(),
            Self::Stored(stored) => stored.bytes(),
        }
    }
}

/// The job a checkpoint has to fit: what its content is compared with.
#[derive(Clone, Copy, Debug)]
pub struct JobShape<'a> {
    /// The modulus of each point.
    pub moduli: &'a [Modulus],
    /// Points of each modulus, in a row; one modulus for each point is 1.
    pub each: usize,
    /// States and steps of a vector; `None` where a job has no vectors.
    pub vectors: Option<(usize, u64)>,
}

impl JobShape<'_> {
    fn points(&self) -> usize {
        self.moduli.len() * self.each
    }
}

/// What a checkpoint holds.
#[derive(Debug, Default)]
pub struct Saved {
    /// The finished residues: index of the point and its residue.
    pub finished: Vec<(usize, u64)>,
    /// The vectors that were being worked on.
    pub vectors: Vec<Stored>,
}

/// A file whose checksum is right: finished residues, and of each vector first point, lanes, step and words, and where
/// these begin.
struct Content {
    file: Arc<Mutex<File>>,
    finished: Vec<[u64; 2]>,
    vectors: Vec<([u64; 4], u64)>,
}

/// The residues of a job, as far as they are known.
#[derive(Clone, Debug)]
pub struct FoundResidues(pub Vec<Option<u64>>);

impl FoundResidues {
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

    /// Reads the checkpoint of a job, if there is one; vectors stay in the file, those of a job that has none are passed
    /// over. Nothing it says is used before its checksum is right and everything lies within the job.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read, is damaged, or belongs to another job; the progress's.
    pub fn load(&self, shape: JobShape<'_>, progress: &Progress) -> Result<Option<Saved>> {
        let Some(Content { file, finished, vectors }) = self.open(progress)? else { return Ok(None) };
        let mut saved = Saved::default();
        for [index, residue] in finished {
            match shape.moduli.get(usize::try_from(index).unwrap_or(usize::MAX) / shape.each.max(1)) {
                Some(modulus) if residue < modulus.value() => saved.finished.push((index as usize, residue)),
                Some(_) => return Err(self.damaged("it has a residue that is none of its modulus")),
                None => return Err(self.damaged("it has residues of points that are not there")),
            }
        }
        if let Some((states, steps)) = shape.vectors {
            for ([first, lanes, step, len], start) in vectors {
                let fits = first < shape.points() as u64
                    && LANES.contains(&(lanes as usize))
                    && len == states as u64 * lanes
                    && step < steps;
                if !fits {
                    return Err(self.damaged("it has a vector that does not fit the job"));
                }
                let (first, lanes) = (first as usize, lanes as usize);
                let (file, path) = (Arc::clone(&file), Arc::from(&*self.path));
                saved.vectors.push(Stored { first, lanes, step, states, file, path, start, width: lanes, lane: 0 });
            }
        }
        Ok(Some(saved))
    }

    /// Reads the state of a job that has neither residues nor lanes, if there is a checkpoint.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_state(&self, progress: &Progress) -> Result<Option<Vec<u64>>> {
        let Some(Content { file, vectors, .. }) = self.open(progress)? else { return Ok(None) };
        let &[([.., len], start)] = &vectors[..] else { return Err(self.damaged("it has no state")) };
        let (path, states) = (Arc::from(&*self.path), len as usize);
        let stored = Stored { first: 0, lanes: 1, step: 0, states, file, path, start, width: 1, lane: 0 };
        Ok(Some(stored.read(progress)?.words.to_vec()))
    }

    /// Saves the state of a job that has neither residues nor lanes.
    ///
    /// # Errors
    /// As [`Self::save`].
    pub fn save_state(&mut self, state: &[u64]) -> Result<()> {
        let mut words = Buffer::zeroed(state.len())?;
        words.copy_from_slice(state);
        self.save(&[], [InHand::Vector(&Vector { first: 0, lanes: 1, step: 0, words })].into_iter())
    }

    /// What is said of a file whose content is not what its checksum promises, or of another kind.
    pub fn damaged(&self, what: &str) -> Error {
        self.fault(format!("is damaged: {what}"))
    }

    /// The content of the file, if there is one, once its checksum is right.
    fn open(&self, progress: &Progress) -> Result<Option<Content>> {
        let file = match open_own(OpenOptions::new().read(true), &self.path) {
            Ok(file) => file,
            // Without its folder it could not be saved later: better said now than after the first half minute.
            Err(error) if error.kind() == ErrorKind::NotFound && self.has_folder() => return Ok(None),
            Err(error) => return Err(self.fault(error)),
        };
        let read = |error| self.fault(error);
        let size = file.metadata().map_err(read)?.len();
        let file = Arc::new(Mutex::new(file));
        let mut open = file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reader = Hashed { inner: BufReader::with_capacity(1 << 20, &mut *open), hash: MAGIC };
        if reader.word().map_err(read)? != MAGIC {
            return Err(self.fault("is not a checkpoint of this version of quincunx"));
        }
        if reader.word().map_err(read)? != self.job {
            return Err(self.fault(
                "belongs to another job (other lattice, activity or primes, or a memory limit that chose another method); \
                 remove it or name another",
            ));
        }
        let mut words = 2; // gone by
        let mut next = |reader: &mut Hashed<_>| {
            words += 1;
            if words % LOOK as u64 == 0 {
                progress.check()?;
            }
            reader.word().map_err(read)
        };
        let mut finished = Vec::new();
        let count = next(&mut reader)?;
        if count > size / 16 {
            return Err(self.damaged("it has more residues than bytes"));
        }
        finished.try_reserve_exact(count as usize).map_err(|_| self.damaged("its residues do not fit into memory"))?;
        for _ in 0..count {
            finished.push([next(&mut reader)?, next(&mut reader)?]);
        }
        let (mut vectors, mut start) = (Vec::new(), 8 * (4 + 2 * count));
        for _ in 0..next(&mut reader)? {
            let facts: [u64; 4] = [next(&mut reader)?, next(&mut reader)?, next(&mut reader)?, next(&mut reader)?];
            start += 32;
            vectors.push((facts, start));
            for _ in 0..facts[3] {
                next(&mut reader)?;
            }
            start += 8 * facts[3];
        }
        let hash = reader.hash;
        if reader.word().map_err(read)? != hash {
            return Err(self.damaged("its checksum does not fit its content"));
        }
        if reader.inner.read(&mut [0]).map_err(read)? > 0 {
            return Err(self.damaged("it is longer than its content"));
        }
        drop(open);
        Ok(Some(Content { file, finished, vectors }))
    }

    /// Saves residues and the vectors in hand.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be written; an older checkpoint is then still whole.
    pub fn save<'a>(
        &mut self,
        finished: &[(usize, u64)],
        vectors: impl ExactSizeIterator<Item = InHand<'a>>,
    ) -> Result<()> {
        let start = Instant::now();
        let part = self.part();
        let written = self.write(&part, finished, vectors);
        let placed = written.and_then(|()| std::fs::rename(&part, &self.path).map_err(|error| self.fault(error)));
        if placed.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        placed?;
        self.next = Instant::now()
            + self.interval.max(if self.interval.is_zero() { self.interval } else { start.elapsed() * SHARE });
        Ok(())
    }

    /// A name for the next file, that no other process takes.
    fn part(&self) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let number = fingerprint([u64::from(std::process::id()), now, COUNT.fetch_add(1, Relaxed)]);
        let mut name = self.path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{number:016x}.part"));
        self.path.with_file_name(name)
    }

    /// Takes away the unfinished files of jobs that were killed while they saved. Only who holds the lock may.
    pub fn sweep(&self) {
        let (Some(folder), Some(name)) = (self.path.parent(), self.path.file_name().and_then(|name| name.to_str()))
        else {
            return;
        };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let is_part = |file: &str| {
            let number = file.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".part")?;
            (number.len() == 16 && number.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(())
        };
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_str().and_then(is_part).is_some() {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    fn write<'a>(
        &self,
        part: &Path,
        finished: &[(usize, u64)],
        vectors: impl ExactSizeIterator<Item = InHand<'a>>,
    ) -> Result<()> {
        let fault = |error: std::io::Error| self.fault(error);
        let file = open_own(OpenOptions::new().write(true).create_new(true), part).map_err(fault)?;
        let mut writer = Hashed { inner: BufWriter::with_capacity(1 << 20, file), hash: MAGIC };
        writer.put([MAGIC, self.job, finished.len() as u64]).map_err(fault)?;
        for &(index, residue) in finished {
            writer.put([index as u64, residue]).map_err(fault)?;
        }
        writer.put([vectors.len() as u64]).map_err(fault)?;
        for vector in vectors {
            let (first, lanes, step) = vector.place();
            writer.put([first as u64, lanes as u64, step, vector.bytes() as u64 / 8]).map_err(fault)?;
            match vector {
                InHand::Vector(vector) => writer.put(vector.words.iter().copied()).map_err(fault)?,
                InHand::Stored(stored) => stored.each(&Progress::default(), |word| writer.put([word]))?,
            }
        }
        let hash = writer.hash;
        writer.put([hash]).map_err(fault)?;
        let file = writer.inner.into_inner().map_err(|error| fault(error.into_error()))?;
        file.sync_all().map_err(fault)
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
        fault(&self.path, reason)
    }
}

fn fault(path: &Path, reason: impl ToString) -> Error {
    Error::File { what: "checkpoint", path: path.display().to_string(), reason: reason.to_string() }
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
    use crate::numeric::residue::primes;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("quincunx-{}-{name}", std::process::id()))
    }

    fn load(checkpoint: &Checkpoint, points: usize, vectors: Option<(usize, u64)>) -> Result<Option<Saved>> {
        let moduli = primes(points).unwrap();
        checkpoint.load(JobShape { moduli: &moduli, each: 1, vectors }, &Progress::default())
    }

    fn vector(first: usize, lanes: usize, step: u64) -> Vector {
        let mut words = Buffer::zeroed(3 * lanes).unwrap();
        words.iter_mut().zip(step..).for_each(|(word, value)| *word = value);
        Vector { first, lanes, step, words }
    }

    fn facts(vector: &Vector) -> (usize, usize, u64, Vec<u64>) {
        (vector.first, vector.lanes, vector.step, vector.words.to_vec())
    }

    fn read(stored: &Stored) -> (usize, usize, u64, Vec<u64>) {
        facts(&stored.read(&Progress::default()).unwrap())
    }

    #[test]
    fn what_was_saved_comes_back() {
        let path = place("round-trip");
        let mut checkpoint = Checkpoint::new(&path, 7);
        assert!(load(&checkpoint, 9, Some((3, 8))).unwrap().is_none());
        let vectors = [vector(4, 4, 5), vector(8, 1, 7)];
        checkpoint.save(&[(3, 9)], vectors.iter().map(InHand::Vector)).unwrap();
        let saved = load(&checkpoint, 9, Some((3, 8))).unwrap().unwrap();
        assert_eq!(saved.finished, [(3, 9)]);
        let found: Vec<_> = saved.vectors.iter().map(read).collect();
        assert_eq!(found, [(4, 4, 5, (5..17).collect()), (8, 1, 7, vec![7, 8, 9])]);
        // What was not read goes over into the next file as it is.
        checkpoint.save(&[(3, 9), (4, 1)], saved.vectors.iter().map(InHand::Stored)).unwrap();
        let again = load(&checkpoint, 9, Some((3, 8))).unwrap().unwrap();
        assert_eq!(again.vectors.iter().map(read).collect::<Vec<_>>(), found);
        assert_eq!(read(&saved.vectors[0]), found[0], "the old file is there as long as somebody needs it");
        assert_eq!(load(&checkpoint, 9, None).unwrap().unwrap().vectors.len(), 0);
        for (points, states, steps) in [(3, 3, 8), (5, 3, 8), (9, 2, 8), (9, 4, 8), (9, 3, 7)] {
            assert!(load(&checkpoint, points, Some((states, steps))).is_err(), "{points} {states} {steps}");
        }
        checkpoint.remove().unwrap();
        assert!(load(&checkpoint, 9, Some((3, 8))).unwrap().is_none());
    }

    #[test]
    fn lanes_are_split_where_memory_is_short() {
        let path = place("split");
        let mut checkpoint = Checkpoint::new(&path, 7);
        checkpoint.save(&[], [vector(0, 8, 1)].iter().map(InHand::Vector)).unwrap();
        let [stored] = &load(&checkpoint, 9, Some((3, 8))).unwrap().unwrap().vectors[..] else { panic!() };
        let parts: Vec<_> = stored.clone().split(2, 6).map(|part| read(&part)).collect();
        let words =
            |lane: u64| [lane, lane + 1, lane + 8, lane + 9, lane + 16, lane + 17].map(|word| word + 1).to_vec();
        assert_eq!(
            parts,
            [(0, 2, 1, words(0)), (2, 2, 1, words(2)), (4, 2, 1, words(4))],
            "lanes beyond 6 points are copies"
        );
        let halves: Vec<_> = stored.clone().split(4, 9).collect();
        checkpoint.save(&[], halves.iter().map(InHand::Stored)).unwrap();
        let again = load(&checkpoint, 9, Some((3, 8))).unwrap().unwrap();
        assert_eq!(again.vectors.iter().map(read).collect::<Vec<_>>(), halves.iter().map(read).collect::<Vec<_>>());
        checkpoint.remove().unwrap();
    }

    /// A file whose checksum is right, whatever it says.
    fn forged(path: &Path, words: &[u64]) {
        let hash = words.iter().fold(MAGIC, |hash, &word| mix(hash, word));
        let bytes: Vec<u8> = words.iter().chain([&hash]).flat_map(|word| word.to_le_bytes()).collect();
        std::fs::write(path, bytes).unwrap();
    }

    #[test]
    fn a_forged_file_is_refused_although_its_checksum_is_right() {
        let path = place("forged");
        let checkpoint = Checkpoint::new(&path, 7);
        let modulus = primes(1).unwrap()[0].value();
        let refused = |words: &[u64], rule: &str| {
            forged(&path, &[&[MAGIC, 7], words].concat());
            let error = load(&checkpoint, 9, Some((1, 4))).unwrap_err().to_string();
            assert!(error.contains(rule), "{words:?}: {error}");
        };
        refused(&[1, 9, 5, 0], "points that are not there");
        refused(&[1, u64::MAX, 5, 0], "points that are not there");
        refused(&[1, 0, modulus, 0], "none of its modulus");
        refused(&[1, 0, u64::MAX, 0], "none of its modulus");
        refused(&[u64::MAX, 0], "more residues than bytes");
        refused(&[0, u64::MAX], "fill");
        refused(&[0, 1, 0, 1, 0, u64::MAX], "fill");
        for vector in [
            [9, 1, 0, 1],
            [u64::MAX, 1, 0, 1],
            [0, 3, 0, 3],
            [0, 0, 0, 0],
            [0, 1, 4, 1],
            [0, 1, u64::MAX, 1],
            [0, 2, 0, 1],
        ] {
            let words: Vec<u64> = vector.iter().copied().chain(std::iter::repeat_n(0, vector[3] as usize)).collect();
            refused(&[&[0, 1], &words[..]].concat(), "does not fit the job");
        }
        forged(&path, &[MAGIC, 7, 1, 0, modulus - 1, 1, 8, 1, 3, 1, 5]);
        assert_eq!(load(&checkpoint, 9, Some((1, 4))).unwrap().unwrap().vectors.len(), 1);
        checkpoint.remove().unwrap();
    }

    #[test]
    fn a_damaged_or_foreign_file_is_refused_and_kept() {
        let path = place("damaged");
        let mut checkpoint = Checkpoint::new(&path, 7);
        checkpoint.save(&[(0, 1), (1, 2)], [].into_iter()).unwrap();
        let foreign = load(&Checkpoint::new(&path, 8), 9, Some((3, 8))).unwrap_err();
        assert!(foreign.to_string().contains("another job"), "{foreign}");
        let whole = std::fs::read(&path).unwrap();
        for position in [0, 30, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[position] ^= 4;
            std::fs::write(&path, &bytes).unwrap();
            assert!(load(&checkpoint, 9, Some((3, 8))).is_err(), "byte {position}");
        }
        for bytes in [&whole[..whole.len() - 9], &[&whole[..], &[0]].concat()] {
            std::fs::write(&path, bytes).unwrap();
            assert!(load(&checkpoint, 9, Some((3, 8))).is_err());
        }
        checkpoint.remove().unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn a_checkpoint_is_its_owner_s_alone_and_no_link_is_followed() {
        use std::os::unix::fs::PermissionsExt;
        let path = place("own");
        let target = place("own-target");
        let mut checkpoint = Checkpoint::new(&path, 7);
        checkpoint.save(&[(0, 1)], [].into_iter()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::rename(&path, &target).unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        let before = std::fs::read(&target).unwrap();
        assert!(load(&checkpoint, 9, None).unwrap_err().to_string().contains("it is a link"));
        // Saving puts a file in the place of the link, and leaves alone where it led.
        checkpoint.save(&[(0, 1), (1, 2)], [].into_iter()).unwrap();
        assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(std::fs::read(&target).unwrap(), before);
        checkpoint.remove().unwrap();
        std::fs::remove_file(target).unwrap();
    }

    #[test]
    fn unfinished_files_of_killed_jobs_are_swept_and_no_others() {
        let folder = place("sweep");
        std::fs::create_dir(&folder).unwrap();
        let checkpoint = Checkpoint::new(&folder.join("state"), 7);
        assert_ne!(checkpoint.part(), checkpoint.part());
        let others =
            ["state", "state.part", "state.0123.part", "other.0123456789abcdef.part", "state.0123456789abcdeg.part"];
        for name in others.into_iter().chain(["state.0123456789abcdef.part"]) {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        std::fs::write(checkpoint.part(), "x").unwrap();
        checkpoint.sweep();
        assert!(others.iter().all(|name| folder.join(name).exists()));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), others.len());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_place_where_nothing_can_be_saved_is_refused_before_any_work() {
        let missing = place("no-such-folder").join("checkpoint");
        let vectors = Some((3, 8));
        assert!(load(&Checkpoint::new(&missing, 7), 9, vectors).unwrap_err().to_string().contains("no-such-folder"));
        assert!(load(&Checkpoint::new(Path::new(""), 7), 9, vectors).is_err());
        let absent = Checkpoint::new(Path::new("a checkpoint that is not there"), 7);
        assert!(load(&absent, 9, vectors).unwrap().is_none());
    }
}
