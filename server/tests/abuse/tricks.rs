//! Paths and heads that are read in more than one way.

use axum::body::Body;
use axum::http::{Request, Uri};

use crate::program::Program;
use crate::target::{TOKEN, Target, small};

/// Values for a part of a path, as they are sent.
fn odd() -> Vec<String> {
    let mut odd: Vec<String> = [
        "..",
        ".",
        "%2e%2e",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2fetc%2fpasswd",
        "%00",
        "a%00b",
        "%ff%fe",
        "%c0%ae%c0%ae",
        "%0d%0aSet-Cookie:%20x=1",
        "a%20b",
        "%E2%80%AE",
        "-",
        "'%20or%20'1'='1",
        "%25%32%65",
        "..;",
        "%5c..%5c",
        "~root",
        "1",
        "-1",
        "18446744073709551616",
        "NaN",
        "null",
        "%7b%7d",
        "*",
        "...",
        "a...b",
        "....",
        "'...'",
        "%3cscript%3e",
    ]
    .map(str::to_owned)
    .to_vec();
    odd.push("a".repeat(8_000));
    odd.push("%61".repeat(2_000));
    odd
}

#[tokio::test(flavor = "multi_thread")]
async fn no_part_of_a_path_leads_anywhere_else() {
    let target = Target::new().await;
    assert_eq!(target.upload(small(0).report().to_json()).await.status.as_u16(), 201);
    for route in &target.table {
        let names: Vec<&str> = route.path.split(['{', '}']).skip(1).step_by(2).collect();
        for name in &names {
            for value in odd() {
                let path = names.iter().fold(route.path.clone(), |path, other| {
                    let fill = match *other {
                        other if other == *name => value.as_str(),
                        "project" => "sentiment",
                        _ => "01890000-0000-7000-8000-000000000000",
                    };
                    path.replace(&format!("{{{other}}}"), fill)
                });
                let Ok(uri) = path.parse::<Uri>() else { continue };
                let request = Request::builder().method(&route.method).uri(uri);
                let request =
                    request.header("authorization", format!("Bearer {TOKEN}")).body(Body::from("{}")).unwrap();
                let seen = target.send(request).await;
                let status = seen.status.as_u16();
                assert!(status < 500, "{} {path}: {status} {}", route.method, seen.text());
                let text = seen.text();
                assert!(!text.contains("root:") && !text.contains("[package]"), "{path}: {text}");
                assert!(!seen.headers.contains_key("set-cookie") || path.starts_with("/sign-"), "{path}");
            }
        }
    }
    assert_eq!(target.snapshots().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_is_read_in_one_way_or_not_at_all() {
    let program = Program::start(&[]).await;
    let get = |extra: &str| format!("GET /api/v1/tokens HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{extra}\r\n");
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let wrong = "Authorization: Bearer wrong-wrong-wrong-wrong\r\n";
    let many: String = (0..300).map(|n| format!("X-{n}: 1\r\n")).collect();
    let long = format!("X-Long: {}\r\n", "a".repeat(100 << 10));
    let path = format!("GET /{} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "a".repeat(100 << 10));
    let cases: [(&str, String, &[&str]); 15] = [
        ("as it should be", get(&bearer), &["200"]),
        ("no token", get(""), &["401"]),
        ("the right token first", get(&format!("{bearer}{wrong}")), &["400"]),
        ("the right token last", get(&format!("{wrong}{bearer}")), &["400"]),
        ("the right token twice", get(&format!("{bearer}{bearer}")), &["400"]),
        ("two tokens in one line", get(&format!("Authorization: Bearer wrong, Bearer {TOKEN}\r\n")), &["401"]),
        ("a folded line", get(&format!("Authorization: Bearer\r\n {TOKEN}\r\n")), &["400", "401"]),
        ("a space before the colon", get(&format!("Authorization : Bearer {TOKEN}\r\n")), &["400"]),
        ("a NUL", get("X-A: a\0b\r\n"), &["400"]),
        ("a long line", get(&long), &["431"]),
        ("many lines", get(&many), &["431"]),
        ("a long path", path, &["414", "431"]),
        ("another HTTP", "GET / HTTP/3.7\r\nHost: x\r\n\r\n".to_owned(), &["400", "505"]),
        ("no HTTP", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\r\n\r\n".to_owned(), &["400"]),
        (
            "another server's address",
            "GET http://evil.example/nothing HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".to_owned(),
            &["404"],
        ),
    ];
    for (what, head, statuses) in cases {
        let answer = program.say(head.as_bytes()).await;
        let fits = statuses.iter().any(|status| answer.starts_with(&format!("HTTP/1.1 {status}")));
        assert!(fits, "{what}: {answer:.300}");
    }
    program.is_well().await;
}

/// A request whose end a proxy before us may see elsewhere must not carry a second one past it.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_smuggled_inside_another() {
    let program = Program::start(&[]).await;
    let inner = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let start = "POST /sign-in HTTP/1.1\r\nHost: x\r\n";
    let length = inner.len();
    let cases = [
        (
            "both lengths, chunked wins",
            format!("{start}Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}", length + 5),
        ),
        (
            "both lengths, the other order",
            format!("{start}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{inner}"),
        ),
        ("two lengths", format!("{start}Content-Length: 0\r\nContent-Length: {length}\r\n\r\n{inner}")),
        ("a list of lengths", format!("{start}Content-Length: 0, {length}\r\n\r\n{inner}")),
        ("a signed length", format!("{start}Content-Length: +{length}\r\n\r\n{inner}")),
        (
            "an encoding that is not chunked at the end",
            format!("{start}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{inner}"),
        ),
        ("an encoding by another name", format!("{start}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{inner}")),
        (
            "an encoding twice",
            format!("{start}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{inner}"),
        ),
        (
            "a length of a chunk that overflows",
            format!("{start}Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n{inner}"),
        ),
        ("a chunk's length with a sign", format!("{start}Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n{inner}")),
    ];
    for (what, bytes) in cases {
        let answer = program.say(bytes.as_bytes()).await;
        let answers = answer.matches("HTTP/1.1 ").count();
        assert!(answers <= 1 && !answer.contains("\r\n\r\nok\n"), "{what}: {answers} answers: {answer}");
    }
    program.is_well().await;
}
