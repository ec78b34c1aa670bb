//! Bodies that are too large, before or after they are unpacked, or too deep.

use std::io::Write as _;

use axum::body::Body;
use axum::http::Request;
use plimsoll_domain::report::MAX_BYTES;
use tokio::io::AsyncWriteExt as _;

use crate::program::{Program, heard};
use crate::target::{TOKEN, Target};

/// What the program may take at most, with all that these tests send it: two bodies of the largest size, and itself.
const MOST_MIB: u64 = 400;

fn head(extra: &str) -> String {
    format!("POST /api/v1/snapshots HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n{extra}\r\n")
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(target_os = "linux"), ignore = "the memory of a process is read from /proc")]
async fn a_gigabyte_is_ended_early_and_takes_no_memory() {
    const GIGABYTE: usize = 1 << 30;
    let program = Program::start(&[]).await;
    // Said to be one: not read at all.
    let answer = program.say(head(&format!("Content-Length: {GIGABYTE}\r\n")).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    // Without saying so, and by somebody whom nobody knows.
    for (authorization, status, most) in
        [(format!("Authorization: Bearer {TOKEN}\r\n"), "413", 2 * MAX_BYTES), (String::new(), "401", MAX_BYTES)]
    {
        let stream = program.connect().await;
        let (mut reads, mut writes) = stream.into_split();
        let head =
            format!("POST /api/v1/snapshots HTTP/1.1\r\nHost: x\r\n{authorization}Transfer-Encoding: chunked\r\n\r\n");
        let answer = tokio::spawn(async move {
            let mut answer = Vec::new();
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = tokio::io::AsyncReadExt::read(&mut reads, &mut part).await {
                answer.extend_from_slice(&part[..length]);
            }
            String::from_utf8_lossy(&answer).into_owned()
        });
        writes.write_all(head.as_bytes()).await.unwrap();
        let chunk = [format!("{:x}\r\n", 1 << 20).into_bytes(), vec![b' '; 1 << 20], b"\r\n".to_vec()].concat();
        let mut sent = 0;
        while sent < GIGABYTE && writes.write_all(&chunk).await.is_ok() {
            sent += 1 << 20;
        }
        assert!(sent < most, "{sent} bytes were taken");
        drop(writes);
        let answer = answer.await.unwrap();
        // The connection may be cut before the answer is through.
        assert!(answer.is_empty() || answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    // Four at a time that unpack to a gigabyte together.
    for (encoding, bomb) in [("gzip", gzip_bomb(GIGABYTE / 4)), ("zstd", zstd_bomb(GIGABYTE / 4))] {
        assert!(bomb.len() < 8 << 20, "{} bytes", bomb.len());
        let length = bomb.len();
        let head = head(&format!("Connection: close\r\nContent-Encoding: {encoding}\r\nContent-Length: {length}\r\n"));
        let throws = (0..4).map(|_| async {
            let mut stream = program.connect().await;
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&bomb).await.unwrap();
            heard(&mut stream).await
        });
        for answer in futures_util::future::join_all(throws).await {
            assert!(answer.starts_with("HTTP/1.1 413"), "{encoding}: {answer}");
        }
    }
    program.is_well().await;
    let peak = program.peak_mib();
    assert!(peak < MOST_MIB, "{peak} MiB");
}

fn gzip_bomb(bytes: usize) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let part = vec![b' '; 1 << 20];
    for _ in 0..bytes >> 20 {
        gzip.write_all(&part).unwrap();
    }
    gzip.finish().unwrap()
}

fn zstd_bomb(bytes: usize) -> Vec<u8> {
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let part = vec![b' '; 1 << 20];
    for _ in 0..bytes >> 20 {
        zstd.write_all(&part).unwrap();
    }
    zstd.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nesting_is_refused_wherever_json_is_read() {
    let target = Target::new().await;
    let deep = [
        "[".repeat(1_000_000),
        "{\"a\":".repeat(200_000),
        format!("{{\"phases\":{}", "[".repeat(500_000)),
        format!("{{\"plan\":{}1{}}}", "{\"a\":".repeat(100_000), "}".repeat(100_000)),
    ];
    for route in target.table.iter().filter(|route| ["POST", "PUT", "PATCH"].contains(&route.method.as_str())) {
        let run = "01890000-0000-7000-8000-000000000000";
        let path = route.path.replace("{project}", "sentiment").replace("{run}", run).replace("{id}", run);
        for body in &deep {
            let seen = target.change(route.method.as_str(), &path, body.clone()).await;
            assert!(seen.status.as_u16() < 500, "{route:?}: {} {}", seen.status, seen.text());
            assert!(!seen.status.is_success() || !path.starts_with("/api/"), "{route:?}: {}", seen.status);
        }
    }
}

#[tokio::test]
async fn a_body_that_is_not_what_it_says_is_refused() {
    let target = Target::new().await;
    let gzip = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    };
    let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).unwrap();
    let cases = [
        ("gzip", b"{}".to_vec(), 400),
        ("gzip", gzip(&gzip(b"{}")), 400),
        ("gzip, gzip", gzip(&gzip(b"{}")), 415),
        ("deflate", gzip(b"{}"), 415),
        ("GZIP ", gzip(b"{}"), 415),
        ("identity", gzip(b"{}"), 400),
        ("zstd", b"{}".to_vec(), 400),
        ("zstd", gzip(b"{}"), 400),
        ("zstd", zstd(&zstd(b"{}")), 400),
        ("zstd", [zstd(b"{}"), b"{}".to_vec()].concat(), 400),
        ("zstd", zstd(b"{}")[..6].to_vec(), 400),
        // A frame that asks for a window of 1 GiB.
        ("zstd", [&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 20 << 3][..], &[1, 0, 0]].concat(), 400),
    ];
    for (encoding, body, status) in cases {
        let request = Request::post("/api/v1/snapshots").header("authorization", format!("Bearer {TOKEN}"));
        let seen = target.send(request.header("content-encoding", encoding).body(Body::from(body)).unwrap()).await;
        assert_eq!(seen.status.as_u16(), status, "{encoding}: {}", seen.text());
    }
    assert_eq!(target.snapshots().await, 0);
}
