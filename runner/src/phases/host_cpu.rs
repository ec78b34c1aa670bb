//! How busy the whole host is, whoever uses it.

use sysinfo::System;

pub(super) struct HostCpu {
    /// `None` where the system does not tell.
    system: Option<System>,
    started: bool,
}

impl HostCpu {
    pub(super) fn new() -> Self {
        Self { system: System::new().ok(), started: false }
    }

    /// Starts an interval.
    pub(super) fn start(&mut self) {
        if let Some(system) = &mut self.system {
            system.refresh_cpu_usage();
            self.started = true;
        }
    }

    /// The fraction of all cores that was in use since the start of the interval, which it ends; `None` without one.
    pub(super) fn used(&mut self) -> Option<f64> {
        let started = std::mem::take(&mut self.started);
        let system = self.system.as_mut().filter(|_| started)?;
        system.refresh_cpu_usage();
        let share = f64::from(system.global_cpu_usage()) / 100.0;
        (share.is_finite() && !system.cpus().is_empty()).then(|| share.clamp(0.0, 1.0))
    }
}
