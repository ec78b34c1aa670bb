//! What a browser may do with what we send: show it, with our own style sheet, script and images, and nothing else. On
//! every answer, since also a report or an error may be opened in a browser.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
pub(super) const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// The same, where a form leads to another site.
pub(super) fn with_form_to(site: &str) -> Option<String> {
    let origin = site.parse::<url::Url>().ok()?.origin().ascii_serialization();
    Some(POLICY.replace("form-action 'self'", &format!("form-action 'self' {origin}")))
}

/// A year.
const ONLY_TLS: &str = "max-age=31536000";

/// `over_tls`: people reach this server by https, and shall by nothing else.
pub(crate) fn secure(headers: &mut HeaderMap, over_tls: bool) {
    let set = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in set {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // An image that other sites show says so itself, and the one page with a form that leads to another site.
    for (name, value) in [(header::CONTENT_SECURITY_POLICY, POLICY), (RESOURCE_POLICY, "same-origin")] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if over_tls {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(ONLY_TLS));
    }
    // A snapshot never changes, but the page around it does, and who may read it; nor does a cache tell callers apart.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-cache"));
}
