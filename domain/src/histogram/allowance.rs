//! What the histograms of one document may hold together, counted while they are read: a hundred bytes of JSON can hold a
//! histogram that unpacks to thousands of bins.

use std::cell::Cell;

use super::Histogram;

/// What is left, of what was allowed.
#[derive(Debug, Clone, Copy)]
struct Left {
    histograms: u64,
    bins: u64,
    of: (u64, u64),
}

thread_local! {
    /// Deserializing passes nothing down to a single histogram, so the count lies beside it.
    static LEFT: Cell<Option<Left>> = const { Cell::new(None) };
}

/// Runs `read`, in which at most so many histograms, and bins of all of them, are deserialized.
pub(crate) fn within<T>(histograms: u64, bins: u64, read: impl FnOnce() -> T) -> T {
    /// Puts back what was there, whatever happens.
    struct Before(Option<Left>);
    impl Drop for Before {
        fn drop(&mut self) {
            LEFT.set(self.0);
        }
    }
    let _before = Before(LEFT.replace(Some(Left { histograms, bins, of: (histograms, bins) })));
    read()
}

/// One more histogram was read.
pub(super) fn take(histogram: &Histogram) -> Result<(), String> {
    let Some(left) = LEFT.get() else { return Ok(()) };
    let bins = histogram.filled() as u64;
    let Some(histograms) = left.histograms.checked_sub(1) else {
        return Err(format!("more than {} histograms", left.of.0));
    };
    let Some(bins) = left.bins.checked_sub(bins) else {
        return Err(format!("histograms of more than {} bins together", left.of.1));
    };
    LEFT.set(Some(Left { histograms, bins, ..left }));
    Ok(())
}
