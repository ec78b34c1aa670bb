//! The lifeline: a part's stdin is a pipe that only the demo holds, so it closes when the demo ends, however it ends.

use std::io::Read as _;
use std::time::Duration;

/// How long a part may take to put its things in order.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// Ends this process when its stdin closes: first as by a signal, so that it stops cleanly, then at once.
pub fn end_with_stdin() {
    let wait = || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = [0; 64];
        while !matches!(stdin.read(&mut buffer), Ok(0) | Err(_)) {}
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
        std::thread::sleep(GRACE);
        std::process::exit(70);
    };
    std::thread::Builder::new().name("lifeline".to_owned()).spawn(wait).expect("a thread starts");
}
