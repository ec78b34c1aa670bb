//! Reading responses: every form, cut at every place.

use plimsoll_runner::load::http::{BadResponse, Decoder, Limits, MAX_HEAD};
use proptest::prelude::*;

const LIMITS: Limits = Limits { body: 1_000_000, keep: 1_000_000 };

#[derive(Debug, PartialEq)]
struct Read {
    status: u16,
    body: String,
    keeps_alive: bool,
}

/// Feeds `text` in pieces that end at `cuts`, then the end of the connection if the response is still open.
fn read_in_pieces(text: &[u8], cuts: &[usize], answers_head: bool) -> Result<Read, BadResponse> {
    let mut decoder = Decoder::new(LIMITS);
    decoder.begin(answers_head);
    let mut done = false;
    let mut from = 0;
    for to in cuts.iter().copied().chain([text.len()]) {
        let to = to.clamp(from, text.len());
        done |= decoder.push(&text[from..to])?;
        from = to;
    }
    if !done {
        decoder.close()?;
    }
    let body = String::from_utf8(decoder.body().to_vec()).unwrap();
    Ok(Read { status: decoder.status(), body, keeps_alive: decoder.keeps_alive() })
}

fn read(text: &str) -> Result<Read, BadResponse> {
    read_in_pieces(text.as_bytes(), &[], false)
}

fn good(status: u16, body: &str, keeps_alive: bool) -> Result<Read, BadResponse> {
    Ok(Read { status, body: body.to_owned(), keeps_alive })
}

/// Response text, what it says, and whether the connection stays usable.
const RESPONSES: &[(&str, u16, &str, bool)] = &[
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", true),
    ("HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", 200, "", true),
    ("HTTP/1.1 200 OK\ncontent-length: 2\n\nhi", 200, "hi", true),
    ("HTTP/1.1 503 Busy\r\nconnection: close\r\ncontent-length: 4\r\n\r\nbusy", 503, "busy", false),
    ("HTTP/1.1 200 OK\r\nConnection: x, Close\r\ncontent-length: 1\r\n\r\na", 200, "a", false),
    ("HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\ncontent-length: 2\r\n\r\nhi", 200, "hi", true),
    ("HTTP/1.1 204 No Content\r\n\r\n", 204, "", true),
    ("HTTP/1.1 304 Not Modified\r\ncontent-length: 10\r\n\r\n", 304, "", true),
    (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        200,
        "ok",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\n\r\n",
        200,
        "hello world",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\nA\r\n0123456789\r\n000\r\ntrailer: x\r\nother: y\r\n\r\n",
        200,
        "0123456789",
        true,
    ),
    ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 200, "", true),
    ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\n\n2\nhi\n0\n\n", 200, "hi", true),
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 99\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        200,
        "hi",
        false,
    ),
    ("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nuntil the end", 200, "until the end", false),
    ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nuntil the end", 200, "until the end", false),
    ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi", 200, "hi", false),
    ("HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\ncontent-length: 2\r\n\r\nhi", 200, "hi", true),
    // Bytes past the end: the answer stands, the connection does not.
    ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi, more", 200, "hi", false),
];

#[test]
fn every_form_of_response_is_read() {
    for (text, status, body, keeps_alive) in RESPONSES {
        assert_eq!(read(text), good(*status, body, *keeps_alive), "{text}");
    }
    let to_head = "HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n";
    assert_eq!(read_in_pieces(to_head.as_bytes(), &[], true), good(200, "", true));
}

#[test]
fn every_cut_in_two_reads_the_same() {
    for (text, status, body, keeps_alive) in RESPONSES {
        for cut in 0..=text.len() {
            let read = read_in_pieces(text.as_bytes(), &[cut], false);
            // Whether bytes past the end were seen depends on the cut; the answer does not.
            let read = read.map(|read| Read { keeps_alive: read.keeps_alive && *keeps_alive, ..read });
            let usable = *keeps_alive;
            assert_eq!(read, good(*status, body, usable), "{text:?} cut at {cut}");
        }
    }
}

#[test]
fn an_early_end_is_an_error_and_says_where() {
    for (text, _, _, keeps_alive) in RESPONSES {
        if !keeps_alive {
            continue;
        }
        for end in 0..text.len() {
            let error = read(&text[..end]).expect_err(&format!("{text:?} ending at {end}"));
            let closed =
                matches!(error, BadResponse::Closed | BadResponse::ClosedInHead | BadResponse::ClosedInBody { .. });
            assert!(closed, "{text:?} ending at {end}: {error}");
        }
    }
    let cut = read("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").unwrap_err();
    assert_eq!(cut.to_string(), "the connection closed after 3 bytes of the answer's body of 10");
}

#[test]
fn what_is_broken_is_refused() {
    for (text, wanted) in [
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "not HTTP/1"),
        ("HTTP/2 200\r\n\r\n", "not HTTP/1"),
        ("HTTP/1.1 abc\r\n\r\n", "not HTTP/1"),
        ("HTTP/1.1 200 OK\r\nbad header\r\n\r\n", "not HTTP/1"),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "Switching"),
        ("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "content-length"),
        ("HTTP/1.1 200 OK\r\ncontent-length: \r\n\r\n", "content-length"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n", "content-length"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi", "content-length"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1000001\r\n\r\n", "longer than 1000000"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", "hexadecimal"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n", "hexadecimal"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "hexadecimal"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhixx\r\n", "longer than its size"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n", "longer than 1000000"),
    ] {
        let said = read(text).expect_err(text).to_string();
        assert!(said.contains(wanted), "{text:?}: {said}");
    }
}

#[test]
fn nothing_grows_without_bound() {
    let header = format!("x: {}\r\n", "a".repeat(1_000));
    let long_head = format!("HTTP/1.1 200 OK\r\n{}\r\n", header.repeat(MAX_HEAD / 1_000 + 1));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(200));
    let line = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;{}\r\n", "e".repeat(10_000));
    let trailers = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n{}\r\n", header.repeat(100));
    for text in [&long_head, &many, &line, &trailers] {
        for pieces in [vec![], (0..text.len()).step_by(997).collect()] {
            assert!(read_in_pieces(text.as_bytes(), &pieces, false).is_err(), "{}…", &text[..60]);
        }
    }
    // A body larger than what is wanted is counted, not kept.
    let mut decoder = Decoder::new(Limits { body: 1_000_000, keep: 10 });
    decoder.begin(false);
    assert!(!decoder.push(b"HTTP/1.1 200 OK\r\n\r\n").unwrap());
    (0..100).for_each(|_| assert!(!decoder.push(&[b'x'; 10_000]).unwrap()));
    assert_eq!(decoder.body(), b"xxxxxxxxxx");
    assert_eq!(decoder.push(b"x"), Err(BadResponse::LongBody(1_000_000)));
}

#[test]
fn one_decoder_reads_one_response_after_the_other() {
    let mut decoder = Decoder::new(LIMITS);
    for round in 0..3 {
        for (text, status, body, _) in RESPONSES {
            decoder.begin(false);
            if !decoder.push(text.as_bytes()).unwrap() {
                decoder.close().unwrap();
            }
            assert_eq!((decoder.status(), decoder.body()), (*status, body.as_bytes()), "round {round}: {text}");
        }
    }
}

/// A body in chunks with their sizes.
fn chunked(chunks: &[String]) -> String {
    let chunks: String = chunks.iter().map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len())).collect();
    format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
}

proptest! {
    #[test]
    fn any_chunks_in_any_pieces_are_the_body(
        chunks in prop::collection::vec("[a-z\r\n]{1,40}", 0..8), mut cuts in prop::collection::vec(0usize..500, 0..12)
    ) {
        cuts.sort_unstable();
        let read = read_in_pieces(chunked(&chunks).as_bytes(), &cuts, false);
        prop_assert_eq!(read, good(200, &chunks.concat(), true));
    }

    #[test]
    fn no_bytes_make_it_panic(
        pieces in prop::collection::vec(
            prop_oneof![
                Just(b"HTTP/1.1 200 OK\r\n".to_vec()), Just(b"transfer-encoding: chunked\r\n\r\n".to_vec()),
                Just(b"content-length: 3\r\n\r\n".to_vec()), Just(b"5\r\nhello\r\n".to_vec()), Just(b"0\r\n\r\n".to_vec()),
                prop::collection::vec(any::<u8>(), 0..30),
            ], 0..10)
    ) {
        let mut decoder = Decoder::new(LIMITS);
        decoder.begin(false);
        for piece in &pieces {
            if decoder.push(piece).is_err() {
                return Ok(());
            }
        }
        let _ = decoder.close();
    }
}
