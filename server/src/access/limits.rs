//! How many requests a token or an address may send, and how often an address may fail to sign in.
//!
//! Callers are counted in a fixed number of slots, by a hash that nobody outside can compute: the memory is bounded
//! whoever sends what. Two callers in one slot share its allowance, which is ample for both.

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use axum::http::StatusCode;
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use uuid::Uuid;

use super::caller::{Caller, Who};
use crate::error::AppError;

/// What is allowed; all of it is configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Of one token, and of one address without a token.
    pub requests_per_second: NonZeroU32,
    /// Requests of one address with a token that is not known, and sign-ins that failed.
    pub failures_per_minute: NonZeroU32,
}

impl Default for Allowance {
    fn default() -> Self {
        let (requests, failures) = (const { NonZeroU32::new(500).unwrap() }, const { NonZeroU32::new(20).unwrap() });
        Self { requests_per_second: requests, failures_per_minute: failures }
    }
}

/// The counts.
#[derive(Debug)]
pub struct Limits {
    requests: Slots,
    /// Requests of an address that say who they are, before it is known whether that is so.
    arrivals: Slots,
    failures: Slots,
}

/// This many seconds' requests may come at once.
const BURST_S: u32 = 4;
const SLOTS: u64 = 1 << 16;

impl Limits {
    pub fn new(allowance: &Allowance) -> Self {
        let Allowance { requests_per_second: requests, failures_per_minute: failures } = *allowance;
        let burst = requests.saturating_mul(const { NonZeroU32::new(BURST_S).unwrap() });
        Self {
            requests: Slots::new(Quota::per_second(requests).allow_burst(burst)),
            arrivals: Slots::new(Quota::per_second(requests).allow_burst(burst)),
            failures: Slots::new(Quota::per_minute(failures)),
        }
    }

    /// Counts a request; 429 when it is one too many.
    pub(crate) fn request(&self, caller: &Caller) -> Result<(), AppError> {
        let Some(counted) = Counted::of(caller) else { return Ok(()) };
        self.requests.count(&counted).map_err(|wait| too_many("too many requests", wait))
    }

    /// Counts a request that says who it is, before that is looked up; 429 when the address sends too many of them.
    pub(super) fn arrival(&self, address: Option<IpAddr>) -> Result<(), AppError> {
        let Some(address) = address else { return Ok(()) };
        let counted = Counted::Address(network(address));
        self.arrivals.count(&counted).map_err(|wait| too_many("too many requests from this address", wait))
    }

    /// Counts a failure to sign in, and says how to answer it: with `refusal`, or 429 when it is one too many. What is
    /// right is never refused because of failures.
    pub fn failure(&self, address: Option<IpAddr>, refusal: AppError) -> AppError {
        let Some(address) = address else { return refusal };
        match self.failures.count(&Counted::Address(network(address))) {
            Ok(()) => refusal,
            Err(wait) => too_many("too many failures to sign in from this address", wait),
        }
    }

    /// Lets go of slots that are as good as new.
    pub fn tidy(&self) {
        for slots in [&self.requests, &self.arrivals, &self.failures] {
            slots.limiter.retain_recent();
            slots.limiter.shrink_to_fit();
        }
    }
}

/// By what callers are told apart where each has a share of something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Counted {
    Token(Uuid),
    Configured(IpAddr),
    Member(String),
    /// By its repository.
    Workflow(i64),
    Address(IpAddr),
}

impl Counted {
    /// `None` for who is not there over a connection: the program that holds the router asks itself.
    pub(crate) fn of(caller: &Caller) -> Option<Self> {
        match (&caller.who, caller.address.map(network)) {
            (Who::Token { id: Some(id), .. }, _) => Some(Self::Token(*id)),
            (Who::Token { id: None, .. }, Some(network)) => Some(Self::Configured(network)),
            (Who::Member { login }, _) => Some(Self::Member(login.clone())),
            (Who::Workflow(workflow), _) => Some(Self::Workflow(workflow.repository_id)),
            (_, Some(network)) => Some(Self::Address(network)),
            (_, None) => None,
        }
    }
}

#[derive(Debug)]
struct Slots {
    limiter: DefaultKeyedRateLimiter<u64>,
    hasher: RandomState,
}

impl Slots {
    fn new(quota: Quota) -> Self {
        Self { limiter: RateLimiter::keyed(quota), hasher: RandomState::new() }
    }

    /// The time to wait, when it is one too many.
    fn count(&self, counted: &Counted) -> Result<(), Duration> {
        let slot = self.hasher.hash_one(counted) % SLOTS;
        self.limiter.check_key(&slot).map_err(|until| until.wait_time_from(DefaultClock::default().now()))
    }
}

/// Whoever has an IPv6 address has the 2⁶⁴ beside it.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

fn too_many(what: &str, wait: Duration) -> AppError {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let detail = format!("{what}: try again in {seconds} s");
    AppError::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(seconds.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(requests: u32, failures: u32) -> Limits {
        let some = |n| NonZeroU32::new(n).unwrap();
        Limits::new(&Allowance { requests_per_second: some(requests), failures_per_minute: some(failures) })
    }

    fn from(address: &str) -> Caller {
        Caller { address: Some(address.parse().unwrap()), ..Caller::anonymous() }
    }

    #[test]
    fn each_caller_has_an_allowance_of_their_own() {
        let limits = limits(1, 1);
        let one = from("192.0.2.1");
        let taken = (0..100).take_while(|_| limits.request(&one).is_ok()).count();
        assert!((4..=5).contains(&taken), "{taken}");
        limits.request(&from("192.0.2.2")).unwrap();
        // With a token it is the token that counts.
        let token = Who::Token { id: Some(Uuid::from_u128(7)), name: "ci".to_owned() };
        limits.request(&Caller { who: token, ..one.clone() }).unwrap();
        // A network of IPv6 is one caller.
        let six = |n: u32| from(&format!("2001:db8::{n:x}"));
        let taken = (0..100).take_while(|n| limits.request(&six(*n)).is_ok()).count();
        assert!((4..=5).contains(&taken), "{taken}");
    }

    #[test]
    fn the_memory_is_bounded() {
        let limits = limits(1, 1);
        for n in 0..200_000_u32 {
            let _ = limits.request(&Caller { address: Some(IpAddr::V4(n.into())), ..Caller::anonymous() });
        }
        assert!(limits.requests.limiter.len() as u64 <= SLOTS);
    }

    #[test]
    fn failures_are_counted_apart() {
        let (limits, address) = (limits(500, 3), Some("192.0.2.1".parse().unwrap()));
        let answers: Vec<_> =
            (0..4).map(|_| limits.failure(address, AppError::unauthorized("no")).status().as_u16()).collect();
        assert_eq!(answers, [401, 401, 401, 429]);
        limits.request(&from("192.0.2.1")).unwrap();
    }
}
