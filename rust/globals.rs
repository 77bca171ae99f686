//! Every global that is made when it is first asked for, in one list.
//!
//! The child of a fork has one thread. A global that another thread of the parent was making at that moment stays half made in
//! it, and whoever asks for it there waits for ever. So all are made before a process forks; a thread that is at it is waited for.

use crate::{distributions, factorization, ldp, memory, numeric, parallel};
use std::sync::LazyLock;

fn force<T>(global: &LazyLock<T>) {
    LazyLock::force(global);
}

/// Makes each: ours, and the one of the queues below our pools.
const ALL: [fn(); 15] = [
    || force(&distributions::skellam::masses::AT_MODE),
    || force(&distributions::sums::RULE),
    || force(&distributions::whole_rates::WHOLE_RATES),
    || force(&factorization::collapsed::COEFFICIENTS),
    || force(&ldp::compressed::BASIS),
    || force(&ldp::compressed::COSINES),
    || force(&ldp::logistic::HERMITE),
    || force(&ldp::panels::RULE),
    || force(&ldp::tractable::LEGENDRE),
    || force(&memory::BEGAN),
    || force(&numeric::dispatch::LEVEL),
    || force(&numeric::special::LOG_FACTORIALS),
    || force(&numeric::special::bessel::EXPANSION),
    || force(&parallel::CORES),
    || _ = crossbeam_epoch::default_collector(),
];

/// Makes all globals that are not made yet.
pub fn make_all() {
    ALL.iter().for_each(|make| make());
}
