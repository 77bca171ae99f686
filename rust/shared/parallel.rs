//! The one place with threads: our own pools, which survive `fork`, and the loop that waits for them.
//!
//! The global pool of rayon is never touched: it cannot be rebuilt in a forked child, nor resized. Our pools are kept in a
//! list per size that only grows, its head an atomic pointer and its ends published by compare-and-exchange, so that none of
//! our locks can be held at the moment of a fork (what is made once is made before it, by `globals.rs`). After a fork [`forget_pools`] clears the table in the child; the old pools are leaked
//! on purpose, for their threads no longer exist and joining them would wait for ever.
//!
//! A pool of several threads is shared by all who ask for so many: its workers take from all jobs, and a process has no more
//! threads than asked for. A pool of one thread is lent to one caller at a time: its worker is through with a job before it
//! takes the next, and a plan of milliseconds would wait for hours. Further ones are made when callers meet, and kept.

use crate::monitor::{Monitor, Progress};
use crate::numeric::ring::Ring;
use crate::{Error, Result};
use rayon::ThreadPool;
use rayon::prelude::*;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex};
use std::time::Duration;

/// The largest number of threads a caller can ask for: each number has a place in the table of pools.
pub const MAX_THREADS: usize = 256;

/// How often the waiting thread looks at its monitor: an interrupt is to be answered within 200 ms.
const TICK: Duration = Duration::from_millis(50);

/// Pools of one thread, beyond which callers share the newest.
const MOST_LENT: usize = 256;

/// A pool in the list of its size.
struct PoolNode {
    pool: ThreadPool,
    /// Callers that have it.
    users: AtomicUsize,
    /// Pools of this size, with this one.
    count: usize,
    older: Option<&'static PoolNode>,
}

static POOLS: [AtomicPtr<PoolNode>; MAX_THREADS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_THREADS];

/// Forgets every pool, for the child of a `fork`.
pub fn forget_pools() {
    for slot in &POOLS {
        slot.store(std::ptr::null_mut(), Ordering::Release);
    }
}

/// Asked once: the answer comes from files of the control group, which takes longer than a small count.
pub static CORES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, Into::into));

/// The number of threads this process may use: `QUINCUNX_NUM_THREADS`, else `OMP_NUM_THREADS`, else its cores.
///
/// Workers of joblib, loky and Dask have `OMP_NUM_THREADS=1`, so a job spread over them does not oversubscribe.
pub fn available_threads() -> usize {
    let from_environment = |name| std::env::var(name).ok()?.trim().parse::<usize>().ok().filter(|&n| n > 0);
    from_environment("QUINCUNX_NUM_THREADS")
        .or_else(|| from_environment("OMP_NUM_THREADS"))
        .unwrap_or_else(|| *CORES)
        .min(MAX_THREADS)
}

/// A pool that is the caller's until this is dropped.
struct Lent(&'static PoolNode);

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A new pool at the head of its list, lent already; the head itself where that is to be shared, or there are no more threads.
fn grown(threads: usize) -> Result<&'static PoolNode> {
    let slot = &POOLS[threads - 1];
    loop {
        let head = slot.load(Ordering::Acquire);
        // SAFETY: a published entry is never freed (`forget_pools` leaks), so the reference lives as long as the process.
        let older = unsafe { head.as_ref() };
        let count = older.map_or(0, |entry| entry.count) + 1;
        let built = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("quincunx-{i}"))
            .stack_size(8 << 20);
        let most = if threads == 1 { MOST_LENT } else { 1 };
        let built = (count <= most).then(|| built.build());
        let pool = match (older, built) {
            (_, Some(Ok(pool))) => pool,
            (Some(shared), _) => {
                shared.users.fetch_add(1, Ordering::AcqRel);
                return Ok(shared);
            }
            (None, Some(Err(reason))) => {
                return Err(Error::Check { what: "starting threads", detail: reason.to_string() });
            }
            (None, None) => unreachable!("the first pool of a size is always built"),
        };
        let fresh = Box::into_raw(Box::new(PoolNode { pool, users: AtomicUsize::new(1), count, older }));
        if slot.compare_exchange(head, fresh, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            // SAFETY: published just now, and never freed.
            return Ok(unsafe { &*fresh });
        }
        // SAFETY: `fresh` came from `Box::into_raw` just above and was not published.
        drop(unsafe { Box::from_raw(fresh) });
    }
}

/// A pool with `threads` threads for this caller: one that nobody has, or the one that is shared.
fn lend(threads: usize) -> Result<Lent> {
    // SAFETY: as in `grown`.
    let mut next = unsafe { POOLS[threads - 1].load(Ordering::Acquire).as_ref() };
    while let Some(entry) = next {
        if entry.users.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return Ok(Lent(entry));
        }
        next = entry.older;
    }
    grown(threads).map(Lent)
}

/// Runs `work` on a pool of `threads` threads while this thread waits and keeps the monitor informed.
///
/// Inside `work`, what this file offers uses that pool. The monitor is asked every 50 ms and once at the end; when it objects,
/// the progress is cancelled, the work unwinds at its next unit and the monitor's error is returned.
///
/// # Errors
/// Whatever `work` or the monitor returned; [`Error::Domain`] for a number of threads outside `1..=MAX_THREADS`.
pub fn run<T: Send>(
    threads: usize,
    total: u64,
    monitor: &mut dyn Monitor,
    work: impl FnOnce(&Progress) -> Result<T> + Send,
) -> Result<T> {
    let (mut work, mut value) = (Some(work), None);
    run_erased(threads, total, monitor, &mut |progress| {
        let work = work.take().expect("it is run once");
        work(progress).map(|found| value = Some(found))
    })?;
    Ok(value.expect("work that did not fail has a value"))
}

/// [`run`] of work that keeps its value to itself: compiled once, whatever the work is.
fn run_erased(
    threads: usize,
    total: u64,
    monitor: &mut dyn Monitor,
    work: &mut (dyn FnMut(&Progress) -> Result<()> + Send),
) -> Result<()> {
    if !(1..=MAX_THREADS).contains(&threads) {
        return Err(Error::domain("threads", threads, "between 1 and 256"));
    }
    let progress = Progress::new(total);
    let finished = (Mutex::new(None), Condvar::new());
    let lent = lend(threads)?;
    let objection = lent.0.pool.in_place_scope(|scope| {
        scope.spawn(|_| {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&progress)));
            *finished.0.lock().unwrap_or_else(|e| e.into_inner()) = Some(outcome);
            finished.1.notify_one();
        });
        let mut objection = None;
        let mut outcome = finished.0.lock().unwrap_or_else(|e| e.into_inner());
        while outcome.is_none() {
            outcome = finished.1.wait_timeout(outcome, TICK).unwrap_or_else(|e| e.into_inner()).0;
            if outcome.is_none() && objection.is_none() {
                drop(outcome); // the worker must be able to finish while the monitor speaks
                if let Err(error) = monitor.tick(progress.done(), total) {
                    progress.cancel();
                    objection = Some(error);
                }
                outcome = finished.0.lock().unwrap_or_else(|e| e.into_inner());
            }
        }
        objection
    });
    drop(lent);
    let outcome = finished.0.into_inner().unwrap_or_else(|e| e.into_inner());
    match (objection, outcome) {
        (Some(error), _) => Err(error),
        (None, Some(Ok(result))) => {
            if result.is_ok() {
                monitor.tick(total, total)?;
            }
            result
        }
        (None, Some(Err(panic))) => std::panic::resume_unwind(panic),
        (None, None) => unreachable!("the scope ends only after the worker has stored its outcome"),
    }
}

/// The threads of the current pool; one outside a pool, where rayon would start its global pool to answer.
pub fn threads() -> usize {
    if rayon::current_thread_index().is_none() { 1 } else { rayon::current_num_threads() }
}

/// Runs short work on this very thread: no pool, no waiting, about a microsecond less than nothing to pay for.
///
/// # Errors
/// Whatever `work` returned.
pub fn run_here<T>(total: u64, work: impl FnOnce(&Progress) -> Result<T>) -> Result<T> {
    work(&Progress::new(total))
}

/// Work of which nobody knows how much it is: short work as [`run_here`], other work on a pool of one thread.
///
/// # Errors
/// As [`run`].
pub fn run_one<T: Send>(
    short: bool,
    monitor: &mut dyn Monitor,
    work: impl FnOnce(&Progress) -> Result<T> + Send,
) -> Result<T> {
    if short { run_here(0, work) } else { run(1, 0, monitor, work) }
}

/// Work that hears nobody and owns all it needs: on a thread of its own, while this one keeps the monitor informed. When that
/// objects, the work is left to its end unseen.
///
/// # Errors
/// Whatever `work` or the monitor returned.
pub fn run_unheard<T: Send + 'static>(
    monitor: &mut dyn Monitor,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (say, hear) = std::sync::mpsc::sync_channel(1);
    let work = move || {
        // Nobody may hear it any more.
        let _ = say.send(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)));
    };
    std::thread::Builder::new()
        .name("quincunx-unheard".into())
        .spawn(work)
        .map_err(|reason| Error::Check { what: "starting threads", detail: reason.to_string() })?;
    loop {
        match hear.recv_timeout(TICK) {
            Ok(Ok(result)) => return result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => monitor.tick(0, 0)?,
        }
    }
}

/// Both pieces of work, side by side on the current pool if they are large; outside a pool one after the other.
pub fn fork<A: Send, B: Send>(large: bool, one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    let (mut one, mut other, mut first, mut second) = (Some(one), Some(other), None, None);
    join(large, &mut || first = one.take().map(|work| work()), &mut || second = other.take().map(|work| work()));
    first.zip(second).expect("both are done once")
}

/// Does tiles `0..count` on the threads of the current pool, each thread with its own workspace; outside a pool, on this
/// thread. `grain` neighboring tiles, at least one, are taken at a time.
///
/// # Errors
/// The first error of a workspace or a tile that was met; tiles not begun are left out.
pub fn tiles<S>(
    count: usize,
    grain: usize,
    workspace: impl Fn() -> Result<S> + Sync,
    work: impl Fn(&mut S, usize) -> Result<()> + Sync,
) -> Result<()> {
    hand_out(count, grain, &|each| {
        let mut own = workspace()?;
        each(&mut |tile| work(&mut own, tile))
    })
}

/// `work(workspace, i, piece)` for each piece of `size` elements of a table; the last may be shorter. As [`tiles`].
///
/// # Errors
/// The first error that was met; pieces not begun are left as they were.
pub fn pieces<S, T: Send>(
    table: &mut [T],
    size: usize,
    workspace: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize, &mut [T]) -> Result<()> + Sync,
) -> Result<()> {
    let (len, shared) = (table.len(), Shared::new(table));
    let count = len.div_ceil(size);
    tiles(
        count,
        grain(count),
        || Ok(workspace()),
        |own, i| {
            // SAFETY: the pieces do not overlap, and `tiles` gives each index to one thread.
            work(own, i, unsafe { shared.part(i * size, size.min(len - i * size)) })
        },
    )
}

/// How many pieces of `count` are taken at a time: few enough that threads end together, many enough that asking is cheap.
fn grain(count: usize) -> usize {
    count.div_ceil(64 * threads()).max(1)
}

/// `work` of each item, on the threads of the current pool.
///
/// # Errors
/// The first error that was met; items not begun are dropped.
pub fn each<T: Send>(items: Vec<T>, work: impl Fn(T) -> Result<()> + Sync) -> Result<()> {
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    pieces(&mut items, 1, || (), |(), _, item| item.iter_mut().filter_map(Option::take).try_for_each(&work))
}

/// The values of `term` at `0..count`, computed on the threads of the current pool, in their order.
pub fn map<T: Send>(count: usize, term: impl Fn(usize) -> T + Sync) -> Vec<T> {
    terms(count, &|i| Ok(term(i))).expect("terms that cannot fail")
}

/// [`map`] of terms that can fail.
///
/// # Errors
/// The first error that was met; terms not begun are left out.
pub fn try_map<T: Send>(count: usize, term: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    terms(count, &term)
}

/// The same, compiled once for each type of term.
fn terms<T: Send>(count: usize, term: &(dyn Fn(usize) -> Result<T> + Sync)) -> Result<Vec<T>> {
    if threads() == 1 {
        return (0..count).map(term).collect();
    }
    let mut terms: Vec<Option<T>> = (0..count).map(|_| None).collect();
    let compute = |(): &mut (), i: usize, place: &mut [Option<T>]| {
        place[0] = Some(term(i)?);
        Ok(())
    };
    pieces(&mut terms, 1, || (), compute)?;
    Ok(terms.into_iter().map(|term| term.expect("every term was computed")).collect())
}

/// The sum of `count` terms, computed on the threads of the current pool and added in their order.
pub fn reduce<R: Ring>(ring: &R, count: usize, term: impl Fn(usize) -> R::Element + Sync) -> R::Element {
    map(count, term).into_iter().fold(ring.zero(), |sum, term| ring.fold(ring.add(sum, term)))
}

// What follows, and `run_erased`, are the users of rayon's own generics, beside one sort of the frontier. They are large (a join is
// four hundred lines of the compiler's code for each kind of work) and were a fifth of the whole compilation when every kernel had
// its copy.

/// Calls what it is given with one tile after another, as long as there are any.
type Each<'a> = &'a dyn Fn(&mut dyn FnMut(usize) -> Result<()>) -> Result<()>;

/// Calls `worker` on each thread of the current pool that finds a tile, with what hands out the indices below `count`, each once
/// and `grain` at a time; with one thread, outside a pool, and for a single range, here.
fn hand_out(count: usize, grain: usize, worker: &(dyn Fn(Each<'_>) -> Result<()> + Sync)) -> Result<()> {
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    let take = || {
        let first = next.fetch_add(grain, Ordering::Relaxed);
        (first < count).then(|| first..count.min(first.saturating_add(grain)))
    };
    let work = || {
        let Some(first) = take() else { return };
        let each = |tile: &mut dyn FnMut(usize) -> Result<()>| {
            std::iter::once(first.clone()).chain(std::iter::from_fn(take)).flatten().try_for_each(tile)
        };
        if let Err(error) = worker(&each) {
            next.store(count, Ordering::Relaxed);
            failure.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
        }
    };
    match threads().min(count.div_ceil(grain)) {
        0 | 1 => work(),
        workers => (0..workers).into_par_iter().with_max_len(1).for_each(|_| work()),
    }
    failure.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
}

/// Both pieces of work, side by side if they are large and this is a thread of a pool.
fn join(large: bool, one: &mut (dyn FnMut() + Send), other: &mut (dyn FnMut() + Send)) {
    if large && rayon::current_thread_index().is_some() {
        rayon::join(one, other);
    } else {
        one();
        other();
    }
}

/// A table that several threads work on, each at its own places. It is not borrowed: it has to stay, and nobody else to use it,
/// while any copy of this is used.
#[derive(Debug)]
pub struct Shared<E> {
    start: *mut E,
    len: usize,
}

// SAFETY: elements are only reached by `part`, whose callers vouch that they are alone in their stretch, and by pointers from `at`,
// whose use is unsafe again; where several threads read the same place by `at`, elements are plain words. The test below counts
// that each tile is done once.
unsafe impl<E: Send> Sync for Shared<E> {}
// SAFETY: as for `Sync`; a pointer to elements that can be sent.
unsafe impl<E: Send> Send for Shared<E> {}

impl<E> Clone for Shared<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Shared<E> {}

impl<E> Shared<E> {
    /// Shares a table.
    pub fn new(table: &mut [E]) -> Self {
        Self { start: table.as_mut_ptr(), len: table.len() }
    }

    /// Where an element is. Whoever uses the pointer knows that the table has the element, and is alone there or reads like all
    /// others.
    #[inline(always)]
    pub fn at(&self, index: usize) -> *mut E {
        self.start.wrapping_add(index)
    }

    /// A stretch of the table.
    ///
    /// # Safety
    /// The table is still there, and nobody else uses any of the stretch while the slice lives.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, first: usize, len: usize) -> &mut [E] {
        assert!(first <= self.len && len <= self.len - first, "a place outside the table");
        // SAFETY: the stretch lies in the table, as was just looked at without overflow, and is the caller's alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(first), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;

    #[test]
    fn work_runs_on_the_pool_and_returns_its_value() {
        let (sum, threads) = run(3, 1, &mut Silent, |_| Ok((21 * 2, rayon::current_num_threads()))).unwrap();
        assert_eq!((sum, threads), (42, 3));
    }

    #[test]
    fn a_monitor_that_objects_stops_the_work_and_its_error_comes_back() {
        let outcome = run(1, 10, &mut |_: u64, _: u64| false, |progress| {
            loop {
                std::thread::sleep(Duration::from_millis(1));
                progress.advance(1)?;
            }
        });
        assert_eq!(outcome, Err::<(), _>(Error::Interrupted));
    }

    #[test]
    fn tiles_are_each_done_once_and_a_failure_ends_them() {
        for threads in [1, 3] {
            let mut done = vec![0u8; 1000];
            let shared = Shared::new(&mut done);
            let tile = |made: &mut usize, i: usize| {
                *made += 1;
                // SAFETY: each tile is one element, and `tiles` gives each to one thread: what this test counts.
                unsafe { shared.part(i, 1)[0] += 1 };
                if i == 1500 { Err(Error::Interrupted) } else { Ok(()) }
            };
            run(threads, 1, &mut Silent, |_| tiles(1000, 7, || Ok(0), tile)).unwrap();
            assert!(done.iter().all(|&count| count == 1));
        }
        let failing = |_: &mut (), i: usize| if i == 5 { Err(Error::Interrupted) } else { Ok(()) };
        assert_eq!(run(2, 1, &mut Silent, |_| tiles(10, 1, || Ok(()), failing)), Err(Error::Interrupted));
        assert_eq!(tiles(3, 1, || Ok(()), failing), Ok(()));
    }

    #[test]
    fn nothing_is_done_for_nothing() {
        for threads in [1, 2] {
            let done = run(threads, 1, &mut Silent, |_| {
                tiles(0, 1, || Err::<(), _>(Error::Interrupted), |(), _| Err(Error::Interrupted))?;
                pieces(&mut [0u8; 0], 3, || (), |(), _, _| Err(Error::Interrupted))?;
                each(Vec::<u8>::new(), |_| Err(Error::Interrupted))?;
                Ok((map(0, |i| i), super::threads(), grain(0), grain(1), grain(64 * threads + 1)))
            });
            assert_eq!(done, Ok((vec![], threads, 1, 1, 2)));
        }
        assert_eq!((threads(), grain(0), map(0, |i| i)), (1, 1, vec![]));
    }

    #[test]
    fn terms_pieces_and_items_have_their_places_with_any_number_of_threads() {
        let here: Vec<usize> = (0..1000).map(|i| i * i).collect();
        assert_eq!(map(1000, |i| i * i), here);
        for threads in [1, 2, 3] {
            let found = run(threads, 1, &mut Silent, |_| {
                let mut table = vec![0; 1000];
                pieces(
                    &mut table,
                    7,
                    || 1,
                    |one, i, piece| {
                        piece.iter_mut().zip(7 * i..).for_each(|(x, place)| *x += *one * place * place);
                        Ok(())
                    },
                )?;
                assert_eq!(table, here);
                assert_eq!(fork(true, || 1, || "2"), (1, "2"));
                let last = |i| if i < 999 { Ok(i) } else { Err(Error::Interrupted) };
                assert_eq!(try_map(1000, last), Err(Error::Interrupted));
                let sum = AtomicUsize::new(0);
                each(here.iter().map(Box::new).collect(), |x| {
                    sum.fetch_add(**x, Ordering::Relaxed);
                    Ok(())
                })?;
                assert_eq!(sum.into_inner(), here.iter().sum::<usize>());
                Ok(map(1000, |i| i * i))
            });
            assert_eq!(found, Ok(here.clone()));
        }
    }

    /// Held by tests that look at the table of pools or clear it.
    static TABLE: Mutex<()> = Mutex::new(());

    #[test]
    fn callers_of_one_thread_have_a_pool_each_and_those_of_several_share() {
        let _alone = TABLE.lock().unwrap_or_else(|e| e.into_inner());
        let long = |progress: &Progress| {
            // A second caller is answered while this one waits for it.
            let (say, hear) = std::sync::mpsc::channel();
            std::thread::spawn(move || say.send(run(1, 1, &mut Silent, |_| Ok(rayon::current_num_threads()))));
            let answer = hear.recv_timeout(Duration::from_secs(60));
            progress.advance(1)?;
            Ok(answer)
        };
        for _ in 0..20 {
            assert_eq!(run(1, 1, &mut Silent, long), Ok(Ok(Ok(1))));
        }
        let lent: Vec<Lent> = (0..20).map(|_| lend(1).unwrap()).collect();
        assert!(lent.iter().all(|one| one.0.users.load(Ordering::Relaxed) == 1), "each has its own");
        drop(lent);
        let shared = [lend(5).unwrap(), lend(5).unwrap()];
        assert!(std::ptr::eq(shared[0].0, shared[1].0) && shared[0].0.users.load(Ordering::Relaxed) == 2);
    }

    #[test]
    fn work_that_hears_nobody_is_left_when_the_monitor_objects() {
        assert_eq!(run_unheard(&mut Silent, || Ok(7)), Ok(7));
        assert_eq!(run_unheard(&mut Silent, || Err::<(), _>(Error::Interrupted)), Err(Error::Interrupted));
        let start = std::time::Instant::now();
        let long = || {
            std::thread::sleep(Duration::from_secs(5));
            Ok(())
        };
        assert_eq!(run_unheard(&mut |_: u64, _: u64| false, long), Err(Error::Interrupted));
        assert!(start.elapsed() < Duration::from_secs(4));
        let broken = std::panic::catch_unwind(|| run_unheard(&mut Silent, || -> Result<()> { panic!("broken") }));
        assert_eq!(broken.unwrap_err().downcast_ref::<&str>(), Some(&"broken"));
    }

    #[test]
    fn forgotten_pools_are_built_again() {
        let _alone = TABLE.lock().unwrap_or_else(|e| e.into_inner());
        for _ in 0..3 {
            assert_eq!(run(2, 1, &mut Silent, |_| Ok(rayon::current_num_threads())), Ok(2));
            forget_pools();
        }
    }
}
