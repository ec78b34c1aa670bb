//! Charts as images for other sites: GitHub fetches them by its proxy, without a cookie. A signature stands for the right
//! to read; an address names the run, its baseline, the chart and the colour scheme, and shows the same for ever.

use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use plimsoll_domain::comparison::{Comparison, Verdict};
use plimsoll_domain::ids::RunId;
use serde::Deserialize;
use url::{Host, Url};

use super::headers::RESOURCE_POLICY;
use super::{compare, snapshot};
use crate::access::SigningKey;
use crate::charts::{ALONE, PAIR, Theme};
use crate::error::{AppError, Result};
use crate::github::text::Images;
use crate::outgoing::is_public;
use crate::state::AppState;
use crate::{store, tasks};

/// Nothing of it is run or fetched, wherever it is opened.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
/// A day.
const KEPT: &str = "public, max-age=86400, immutable";
const CHARTS: [&str; 3] = ["staircase", "distribution", "soak"];

#[derive(Debug, Deserialize)]
pub(super) struct Signed {
    theme: Option<String>,
    /// The baseline's run.
    against: Option<String>,
    signature: Option<String>,
}

/// The image, or 404, whatever is wrong with its address.
pub(super) async fn serve(
    State(state): State<AppState>,
    Path((run, chart)): Path<(String, String)>,
    Query(given): Query<Signed>,
) -> Result<Response> {
    let missing = || AppError::not_found("chart at this address");
    let address = Address::read(&run, &chart, &given).ok_or_else(missing)?;
    let signature = given.signature.as_deref().unwrap_or_default();
    if !state.chart_key().await?.has_signed(&address.path(), signature) {
        return Err(missing());
    }
    let _turn = state.turn_to_read().await?;
    let row = async |run| store::snapshots::get(state.pool(), run).await?.ok_or_else(missing);
    let charts = match address.against {
        Some(baseline) => compare::charts(&state, row(baseline).await?, row(address.run).await?).await?,
        None => snapshot::charts(&state, row(address.run).await?).await?,
    };
    let view = charts.into_iter().find(|view| view.id == address.chart).ok_or_else(missing)?;
    let headers = [
        (header::CONTENT_TYPE, "image/svg+xml"),
        (header::CACHE_CONTROL, KEPT),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (RESOURCE_POLICY, "cross-origin"),
    ];
    Ok((headers, view.chart.image(address.theme)).into_response())
}

/// The addresses of the chart that explains a comparison; none where GitHub could not fetch it, and none where nothing
/// is to be seen.
pub async fn images(state: &AppState, run: RunId, comparison: &Comparison) -> tasks::Result<Option<Images>> {
    let Some(server) = state.public_url().filter(|url| images_reachable(url)) else { return Ok(None) };
    let figures = store::snapshots::figures(state.pool(), run).await?;
    let drawn = figures.is_some_and(|figures| figures.steps.iter().any(|step| step.tps.is_some()));
    if !drawn || comparison.verdict == Verdict::Invalid {
        return Ok(None);
    }
    let against = comparison.baseline.as_ref().and_then(|side| side.run_ids.first().copied());
    let key = state.chart_key().await?;
    let [light, dark] = Theme::ALL.map(|theme| {
        let address = Address { run, chart: "staircase", against, theme };
        format!("{}{}", server.trim_end_matches('/'), address.signed(key))
    });
    let (width, height) = if against.is_some() { PAIR } else { ALONE };
    Ok(Some(Images { light, dark, width, height }))
}

/// Whether GitHub's proxy can fetch images from a server at this address: by https, under a name or number of the public
/// Internet.
pub fn images_reachable(public_url: &str) -> bool {
    /// Names that mean something only at home.
    const PRIVATE: [&str; 12] = [
        "localhost",
        "local",
        "internal",
        "intranet",
        "private",
        "corp",
        "lan",
        "home",
        "localdomain",
        "test",
        "invalid",
        "arpa",
    ];
    let Ok(url) = public_url.parse::<Url>() else { return false };
    let public = match url.host() {
        Some(Host::Ipv4(address)) => is_public(address.into()),
        Some(Host::Ipv6(address)) => is_public(address.into()),
        Some(Host::Domain(name)) => name
            .trim_end_matches('.')
            .rsplit_once('.')
            .is_some_and(|(_, last)| !PRIVATE.contains(&last.to_ascii_lowercase().as_str())),
        None => false,
    };
    public && url.scheme() == "https"
}

/// What an address says.
struct Address {
    run: RunId,
    chart: &'static str,
    against: Option<RunId>,
    theme: Theme,
}

impl Address {
    fn read(run: &str, chart: &str, given: &Signed) -> Option<Self> {
        let chart = chart.strip_suffix(".svg")?;
        let theme = given.theme.as_deref()?;
        Some(Self {
            run: run.parse().ok()?,
            chart: CHARTS.into_iter().find(|name| *name == chart)?,
            against: given.against.as_deref().map(str::parse).transpose().ok()?,
            theme: Theme::ALL.into_iter().find(|known| known.name() == theme)?,
        })
    }

    /// All but the signature.
    fn path(&self) -> String {
        let against = self.against.map(|run| format!("against={run}&")).unwrap_or_default();
        format!("/charts/{}/{}.svg?{against}theme={}", self.run, self.chart, self.theme.name())
    }

    fn signed(&self, key: &SigningKey) -> String {
        let path = self.path();
        let signature = key.sign(&path);
        format!("{path}&signature={signature}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_public_and_by_https_is_shown_on_github() {
        for url in ["https://plimsoll.acme.dev", "https://plimsoll.acme.dev:8443/base", "https://1.1.1.1"] {
            assert!(images_reachable(url), "{url}");
        }
        for url in [
            "http://plimsoll.acme.dev",
            "https://localhost:8080",
            "https://plimsoll",
            "https://plimsoll.",
            "https://gpu.local",
            "https://gpu.INTERNAL.",
            "https://plimsoll.corp",
            "https://127.0.0.1",
            "https://10.1.2.3",
            "https://192.168.0.7:8080",
            "https://169.254.169.254",
            "https://[::1]",
            "https://[fd00::1]",
            "https://2130706433",
            "nonsense",
            "",
        ] {
            assert!(!images_reachable(url), "{url}");
        }
    }

    #[test]
    fn an_address_reads_back_and_only_so() {
        let run: RunId = "01890000-0000-7000-8000-000000000001".parse().unwrap();
        let signed =
            |theme: &str| Signed { theme: Some(theme.to_owned()), against: Some(run.to_string()), signature: None };
        let read = Address::read(&run.to_string(), "staircase.svg", &signed("dark")).unwrap();
        assert_eq!(read.path(), format!("/charts/{run}/staircase.svg?against={run}&theme=dark"));
        assert!(Address::read(&run.to_string(), "staircase", &signed("dark")).is_none());
        assert!(Address::read(&run.to_string(), "history.svg", &signed("dark")).is_none());
        assert!(Address::read(&run.to_string(), "soak.svg", &signed("Dark")).is_none());
        assert!(Address::read("v1.0.0", "soak.svg", &signed("light")).is_none());
    }
}
