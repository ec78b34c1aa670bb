//! Uploads a few invented snapshots to a server: `seed URL TOKEN`; prints their run ids. For scripts that need something
//! to find.

use plimsoll_domain::synthetic::Synthetic;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(token)) = (arguments.next(), arguments.next()) else {
        return Err("usage: seed URL TOKEN".into());
    };
    let client = reqwest::Client::new();
    for day in 0..3 {
        let report = Synthetic {
            tag: Some(format!("v1.{day}.0")),
            started_at: jiff::Timestamp::from_second(1_764_000_000 + day * 86_400)?,
            seed: day.unsigned_abs() + 1,
            ..Synthetic::default()
        }
        .report();
        let post = client.post(format!("{url}/api/v1/snapshots")).bearer_auth(&token);
        let answer = post.header("content-type", "application/json").body(report.to_json()).send().await?;
        answer.error_for_status()?;
        println!("{} {}", report.project, report.run_id);
    }
    Ok(())
}
