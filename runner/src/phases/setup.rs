//! From a [`RunSpec`] to something that can be sent: names resolved, TLS set up, requests rendered.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use url::{Host, Url};

use super::error::{Cause, RunError};
use crate::load::http::Limits;
use crate::load::{Endpoint, Tls, Transport};
use crate::protocol::{Json, Target};
use crate::spec::RunSpec;

/// Longest body of an answer.
const MAX_BODY: u64 = 64 << 20;
/// How long a name may take to resolve.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// What the engine needs.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) target: Arc<dyn Target>,
    pub(super) transport: Transport,
    /// Whether the service runs on this host.
    pub(super) shares_host: bool,
}

pub(super) async fn prepare(spec: &RunSpec) -> Result<Setup, RunError> {
    let service = &spec.plan.service;
    let target = Json::new(&spec.requests, service.keep_alive, spec.plan.workload.expect.clone())
        .map_err(|bad| RunError::new(Cause::Plan, bad.to_string()))?;
    let addresses = resolve(&spec.requests.url).await?;
    let shares_host = addresses.iter().any(is_own);
    let tls = match spec.requests.url.scheme() {
        "https" => Some(tls(&spec.requests.url)?),
        _ => None,
    };
    let transport = Transport {
        endpoint: Endpoint { addresses, tls, connect_timeout: Duration::from_millis(service.connect_timeout_ms) },
        response_timeout: Duration::from_millis(service.response_timeout_ms),
        keep_alive: service.keep_alive,
        limits: Limits { body: MAX_BODY, keep: target.wants_body() },
    };
    Ok(Setup { target: Arc::new(target), transport, shares_host })
}

/// All addresses of the service, once per run.
async fn resolve(url: &Url) -> Result<Vec<SocketAddr>, RunError> {
    let port = url.port_or_known_default().unwrap_or(80);
    let name = match url.host() {
        Some(Host::Ipv4(address)) => return Ok(vec![(address, port).into()]),
        Some(Host::Ipv6(address)) => return Ok(vec![(address, port).into()]),
        Some(Host::Domain(name)) => name,
        None => return Err(RunError::new(Cause::Plan, "the service's URL names no host")),
    };
    let unresolved = |why: String| {
        RunError::new(Cause::Service, format!("cannot resolve {name}: {why}"))
            .with_advice("Check `url` in `[service]`, and that this machine can resolve the name.")
    };
    match tokio::time::timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host((name, port))).await {
        Err(_) => Err(unresolved(format!("no answer within {} s", RESOLVE_TIMEOUT.as_secs()))),
        Ok(Err(error)) => Err(unresolved(error.to_string())),
        Ok(Ok(found)) => {
            let mut addresses = Vec::new();
            found.for_each(|address| {
                if !addresses.contains(&address) {
                    addresses.push(address)
                }
            });
            if addresses.is_empty() { Err(unresolved("it has no address".to_owned())) } else { Ok(addresses) }
        }
    }
}

fn tls(url: &Url) -> Result<Tls, RunError> {
    let ours = |error: rustls::Error| RunError::new(Cause::Ours, format!("cannot set up TLS: {error}"));
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(ours)?
        .with_platform_verifier()
        .map_err(ours)?
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| RunError::new(Cause::Plan, format!("{host:?} is no name that a certificate could have")))?;
    Ok(Tls { config: Arc::new(config), name })
}

/// Whether an address is this host's own: a socket towards it would start from the same address. Nothing is sent.
fn is_own(address: &SocketAddr) -> bool {
    let any = SocketAddr::new(if address.is_ipv4() { [0; 4].into() } else { [0u16; 8].into() }, 0);
    let local = || {
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(address).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    address.ip().is_loopback() || local() == Some(address.ip())
}
