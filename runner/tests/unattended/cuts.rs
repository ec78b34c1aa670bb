//! An upload that is cut at any byte goes on where the server says, and arrives whole.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plimsoll_domain::report::{Report, Window};
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_runner::upload::{Package, Pauses, Server};
use proptest::prelude::*;
use serde_json::json;

use crate::receiver::{Receiver, State};

/// A report of several parts, and as it is sent.
fn large() -> &'static (Report, Arc<Package>) {
    static LARGE: OnceLock<(Report, Arc<Package>)> = OnceLock::new();
    LARGE.get_or_init(|| {
        let mut report = Synthetic::default().report();
        // Figures that no compression makes small.
        let mut chance: u64 = 1;
        let mut next = || {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            chance >> 25
        };
        let step = &mut report.phases.last_mut().unwrap().steps[0];
        step.windows = (0..90_000)
            .map(|_| Window { ok: next(), latency_sum_us: next(), latency_max_us: next(), ..Window::default() })
            .collect();
        report.check().unwrap();
        let package = Package::of(&report).unwrap();
        assert!(package.bytes().len() > 1 << 20, "{} bytes", package.bytes().len());
        (report, Arc::new(package))
    })
}

fn deliver(receiver: &Receiver) -> Result<(), String> {
    install_tls();
    let (report, package) = large();
    let package = Package::packed(report.run_id, package.bytes().to_vec());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = Server::new(&receiver.address, None).unwrap();
    let pauses = Pauses::within(Duration::from_secs(60)).from(Duration::from_millis(1));
    let sent = runtime.block_on(server.deliver(&package, pauses, &mut |_| {}));
    sent.map(drop).map_err(|error| error.failure(&server).to_string())
}

fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn arrived_whole(receiver: &Receiver) {
    let report = &large().0;
    let (stored, _) = &receiver.state().stored[&report.run_id.to_string()];
    assert_eq!(stored, report.to_json().as_bytes());
}

#[test]
fn a_large_report_goes_in_parts_and_only_once() {
    let receiver = Receiver::start(State::default());
    deliver(&receiver).unwrap();
    arrived_whole(&receiver);
    let length = large().1.bytes().len();
    assert_eq!(receiver.state().carried, length);
    let methods: Vec<String> =
        receiver.state().seen.iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    let parts = length.div_ceil(1 << 20);
    let expected: Vec<&str> = ["put"].into_iter().chain(std::iter::repeat_n("patch", parts)).chain(["post"]).collect();
    assert_eq!(methods, expected);
}

#[test]
fn a_server_without_parts_gets_it_whole() {
    let receiver = Receiver::start(State { whole_only: true, ..State::default() });
    deliver(&receiver).unwrap();
    arrived_whole(&receiver);
    assert!(receiver.state().seen.last().unwrap().starts_with("post /api/v1/snapshots "));
}

#[test]
fn a_refusal_at_the_end_is_one_and_is_not_repeated() {
    let refuses = Some((422, json!({ "title": "No", "detail": "of no use" })));
    let receiver = Receiver::start(State { refuses, ..State::default() });
    assert!(deliver(&receiver).unwrap_err().contains("No: of no use"));
    assert_eq!(receiver.state().seen.iter().filter(|line| line.starts_with("post ")).count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn cut_at_any_byte_it_goes_on_where_the_server_says(
        cuts in proptest::collection::vec(prop_oneof![0usize..600, 0usize..1_200_000, Just(usize::MAX)], 1..12),
        keeps_pieces in any::<bool>(),
    ) {
        let receiver = Receiver::start(State { cuts: cuts.into(), keeps_pieces, ..State::default() });
        deliver(&receiver).unwrap();
        arrived_whole(&receiver);
        let carried = receiver.state().carried;
        prop_assert_eq!(carried, large().1.bytes().len(), "nothing that it had came twice");
    }
}
