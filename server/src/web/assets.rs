//! The style sheet, the script and the icons, compiled in. Their addresses carry a hash of their bytes, so that a browser may keep
//! them for ever and still gets a new one at once.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::error::AppError;
use crate::hex::hex;

struct Asset {
    stem: &'static str,
    extension: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    hash: String,
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let svg = |stem, bytes| asset(stem, "svg", "image/svg+xml", bytes);
    vec![
        asset("style", "css", "text/css; charset=utf-8", include_bytes!("../../assets/style.css")),
        asset("live", "js", "text/javascript; charset=utf-8", include_bytes!("../../assets/live.js")),
        svg("icon", include_bytes!("../../assets/icon.svg")),
        svg("icon-worse", include_bytes!("../../assets/icon-worse.svg")),
        svg("icon-better", include_bytes!("../../assets/icon-better.svg")),
        svg("icon-doubt", include_bytes!("../../assets/icon-doubt.svg")),
    ]
});

/// The address of an asset by its plain name, for example `style.css`.
pub(super) fn address(name: &str) -> String {
    let found = ASSETS.iter().find(|asset| name == format!("{}.{}", asset.stem, asset.extension));
    found.map_or_else(|| format!("/assets/{name}"), |asset| format!("/assets/{}", asset.hashed()))
}

/// An asset by its address. A former hash gets the present bytes, which are then not kept.
pub(super) async fn serve(Path(name): Path<String>) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.answers(&name)) else {
        return AppError::not_found(format!("asset {name}")).into_response();
    };
    let keep = if name == asset.hashed() { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = [
        (header::CONTENT_TYPE, asset.kind.to_owned()),
        (header::CACHE_CONTROL, keep.to_owned()),
        (header::ETAG, format!("\"{}\"", asset.hash)),
    ];
    (StatusCode::OK, headers, asset.bytes).into_response()
}

/// Browsers ask for it where a page names no icon.
pub(super) async fn favicon() -> Response {
    serve(Path("icon.svg".to_owned())).await
}

impl Asset {
    fn hashed(&self) -> String {
        format!("{}.{}.{}", self.stem, self.hash, self.extension)
    }

    fn answers(&self, name: &str) -> bool {
        let rest = name.strip_suffix(self.extension).and_then(|name| name.strip_suffix('.'));
        rest.is_some_and(|rest| rest.split('.').next() == Some(self.stem))
    }
}

fn asset(stem: &'static str, extension: &'static str, kind: &'static str, bytes: &'static [u8]) -> Asset {
    let hash = hex(&Sha256::digest(bytes)[..6]);
    Asset { stem, extension, kind, bytes, hash }
}
