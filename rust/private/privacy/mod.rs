//! Release of data with a guarantee: exact noise, mechanisms, calibration, sensitivities, composition.
//!
//! [`source`] gives the bits, [`inverse_cdf`] turns them into exact draws of the laws in [`noise`], [`normal`], [`laplace`], [`response`] and [`supports`],
//! which [`mechanism`] adds to whole arrays, after [`records`] clipped them; [`calibration`], [`discrete`], [`loss`], [`composition`], [`zcdp`] and [`sensitivity`] say what a
//! release guarantees.

pub mod calibration;
pub mod choice;
pub mod composition;
pub mod discrete;
pub mod inverse_cdf;
pub mod laplace;
pub mod loss;
pub mod mechanism;
pub mod noise;
pub mod normal;
mod profile_sum;
pub mod records;
pub mod response;
pub mod sensitivity;
pub mod source;
pub mod supports;
pub mod zcdp;

/// The distance of the double after one from one, of which margins are multiples: twice what an operation errs by.
const ULP: f64 = f64::EPSILON;
