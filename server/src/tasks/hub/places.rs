//! Places for those who wait: so many in all, and so many for each caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::access::Counted;

#[derive(Debug)]
pub(super) struct Places {
    all: usize,
    each: usize,
    taken: Arc<Mutex<Taken>>,
}

/// Free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    of: Option<Counted>,
    taken: Arc<Mutex<Taken>>,
}

/// Why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Full {
    All,
    Yours,
}

/// Who has none has no entry.
#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<Counted, usize>,
}

impl Places {
    pub(super) fn new(all: usize, each: usize) -> Self {
        Self { all, each, taken: Arc::default() }
    }

    /// Who is not counted has no bound of their own.
    pub(super) fn take(&self, of: Option<Counted>) -> Result<Place, Full> {
        let mut taken = lock(&self.taken);
        if of.as_ref().and_then(|of| taken.of.get(of)).is_some_and(|has| *has >= self.each) {
            return Err(Full::Yours);
        }
        if taken.all >= self.all {
            return Err(Full::All);
        }
        taken.all += 1;
        if let Some(of) = &of {
            *taken.of.entry(of.clone()).or_default() += 1;
        }
        Ok(Place { of, taken: Arc::clone(&self.taken) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.all -= 1;
        let Some(of) = self.of.take() else { return };
        if let Some(has) = taken.of.get_mut(&of) {
            *has -= 1;
            if *has == 0 {
                taken.of.remove(&of);
            }
        }
    }
}

/// Counts are whole also after a panic elsewhere: nothing here can fail between two of them.
fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_all_places() {
        let places = Places::new(3, 2);
        let one = || Some(Counted::Address("192.0.2.1".parse().unwrap()));
        let two = || Some(Counted::Member("ada".to_owned()));
        let first = places.take(one()).unwrap();
        let _second = places.take(one()).unwrap();
        assert_eq!(places.take(one()).unwrap_err(), Full::Yours);
        let other = places.take(two()).unwrap();
        assert_eq!(places.take(two()).unwrap_err(), Full::All);
        drop(first);
        let _again = places.take(one()).unwrap();
        assert_eq!(places.take(None).unwrap_err(), Full::All);
        drop(other);
        assert_eq!(lock(&places.taken).of.len(), 1);
    }
}
