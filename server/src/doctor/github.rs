//! Whether GitHub answers, where people sign in by it.

use std::time::Duration;

use super::Check;
use crate::github::answer;

pub(super) const WITHIN: Duration = Duration::from_secs(5);

/// One request. Whatever GitHub says to it, short of an error of its own, shows that it can be reached.
pub(super) async fn check(api_url: Option<&str>, within: Duration) -> Check {
    let Some(url) = api_url else {
        return Check::ok("GitHub", "not configured: people sign in by token");
    };
    match answer(url, within).await {
        Ok(status) if status < 500 => Check::ok("GitHub", format!("people may sign in by it; {url} answers")),
        Ok(status) => {
            let advice = "Nobody can sign in by GitHub until it answers otherwise: see https://www.githubstatus.com, or \
                          for an installation of your own its administrator. Tokens work.";
            Check::warning("GitHub", format!("{url} answers {status}"), advice)
        }
        Err(why) => {
            let advice = "Nobody can sign in by GitHub: check PLIMSOLL_GITHUB_API_URL, and that this host may connect \
                          to it. Tokens work.";
            Check::warning("GitHub", format!("{url} does not answer: {why}"), advice)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use axum::Router;
    use axum::http::{StatusCode, Uri};
    use axum::response::{IntoResponse as _, Redirect, Response};
    use tokio::net::TcpListener;

    use super::*;
    use crate::doctor::Level;

    async fn answered(uri: Uri) -> Response {
        match uri.path() {
            "/well" => "well".into_response(),
            "/refuses" => StatusCode::FORBIDDEN.into_response(),
            "/moved" => Redirect::to("/broken").into_response(),
            "/broken" => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            "/silent" => pending().await,
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }

    async fn served() -> String {
        let app = Router::new().fallback(answered);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async { axum::serve(listener, app).await });
        format!("http://{address}")
    }

    #[tokio::test]
    async fn every_answer_but_an_error_of_its_own_is_well() {
        let at = served().await;
        for (path, level) in [
            ("well", Level::Ok),
            ("refuses", Level::Ok),
            ("nothing", Level::Ok),
            ("moved", Level::Ok),
            ("broken", Level::Warning),
        ] {
            let found = check(Some(&format!("{at}/{path}")), WITHIN).await;
            assert_eq!((found.level, found.advice.is_some()), (level, level == Level::Warning), "{path}: {found:?}");
        }
    }

    #[tokio::test]
    async fn no_answer_is_a_warning_and_is_not_waited_for_long() {
        let at = served().await;
        let silent = check(Some(&format!("{at}/silent")), Duration::from_millis(50)).await;
        assert_eq!(silent.level, Level::Warning, "{silent:?}");
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let nobody = format!("http://{}", taken.local_addr().unwrap());
        drop(taken);
        let refused = check(Some(&nobody), WITHIN).await;
        assert!(refused.level == Level::Warning && refused.found.starts_with(&nobody), "{refused:?}");
    }

    #[tokio::test]
    async fn without_sign_in_by_it_nothing_is_asked() {
        let found = check(None, WITHIN).await;
        assert!(found.level == Level::Ok && found.found.starts_with("not configured"), "{found:?}");
    }
}
