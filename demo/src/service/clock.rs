//! Sleeping to an absolute deadline.

use std::time::Instant;

/// Asks the kernel to wake this thread when it should be woken: by default it may round by 50 µs.
pub(super) fn be_exact() {
    #[cfg(target_os = "linux")]
    {
        // A kernel that refuses wakes a little later, which the absolute deadlines keep from adding up.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    }
}

/// Returns at `deadline`, at once when it has passed. No spinning: it would take CPU from what is being measured.
pub(super) fn sleep_until(deadline: Instant) {
    // A sleep can end early on some systems, so it is asked again.
    while let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        std::thread::sleep(left);
    }
}
