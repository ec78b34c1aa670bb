//! When a service that was started takes requests.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;

use super::config::{Ready, Test};
use super::shell::Surroundings;
use super::supervisor::Supervisor;

/// How long one try may take.
const TRY: Duration = Duration::from_secs(10);

/// Waits until the service is ready.
///
/// # Errors
/// Its line ended with a failure, or the time is over.
pub(super) async fn wait(
    ready: &Ready,
    ports: &[u16],
    around: &Surroundings,
    supervisor: &mut Supervisor,
) -> Result<(), String> {
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(TRY)
        .no_proxy()
        .build()
        .map_err(|error| format!("no client to ask the service with: {error}"))?;
    let asking = async {
        let mut last = "it was not asked yet".to_owned();
        let tries = async {
            loop {
                match ask(&ready.test, ports, around, &client).await {
                    Ok(()) => return,
                    Err(why) => last = why,
                }
                tokio::time::sleep(ready.interval).await;
            }
        };
        let over = tokio::time::timeout(ready.timeout, tries).await.is_err();
        if over { Err(last) } else { Ok(()) }
    };
    tokio::pin!(asking);
    let mut watched = true;
    loop {
        tokio::select! {
            asked = &mut asking => return asked.map_err(|last| {
                format!("the service was not ready within {}: {last}", humantime::format_duration(ready.timeout))
            }),
            exit = supervisor.exited(), if watched => match exit {
                // It left the service behind.
                Ok(exit) if exit.success => watched = false,
                Ok(exit) => return Err(format!("`start` ended with {} before the service was ready", exit.how)),
                Err(error) => return Err(format!("the service is not watched any more: {error}")),
            },
        }
    }
}

async fn ask(test: &Test, ports: &[u16], around: &Surroundings, client: &reqwest::Client) -> Result<(), String> {
    match test {
        Test::Url(url) => match client.get(url.clone()).send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("`ready` answers with status {}", answer.status())),
            Err(_) => Err("`ready` does not answer".to_owned()),
        },
        Test::Command(line) => around.line(line, TRY).await.map_err(|ill| format!("`ready` {ill}")),
        Test::Ports => {
            for port in ports {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
                match tokio::time::timeout(TRY, TcpStream::connect(address)).await {
                    Ok(Ok(_)) => {}
                    _ => return Err(format!("nobody listens on port {port}")),
                }
            }
            Ok(())
        }
    }
}
