//! Whether there is room for more, as it was found lately.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Asked by many, and found out anew by one of them at a time.
#[derive(Debug, Default)]
pub(crate) struct Room(Mutex<Option<(Instant, bool)>>);

impl Room {
    /// What was found last. `None` when that is older than this: whoever hears it is the one to find out, and meanwhile the
    /// others believe what they knew, or that there is room.
    pub(crate) fn get(&self, for_this_long: Duration) -> Option<bool> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.filter(|(at, _)| at.elapsed() < for_this_long).map(|(_, room)| room);
        if found.is_none() {
            *known = Some((Instant::now(), known.is_none_or(|(_, room)| room)));
        }
        found
    }

    pub(crate) fn set(&self, room: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_believed_for_a_while_and_one_finds_out_anew() {
        let (room, long) = (Room::default(), Duration::from_secs(3_600));
        assert_eq!(room.get(long), None, "nobody knows");
        assert_eq!(room.get(long), Some(true), "until somebody does");
        room.set(false);
        assert_eq!(room.get(long), Some(false));
        assert_eq!(room.get(Duration::ZERO), None, "too old");
        assert_eq!(room.get(long), Some(false), "another finds out");
        room.set(true);
        assert_eq!(room.get(long), Some(true));
    }
}
