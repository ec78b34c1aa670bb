//! The API's own description (OpenAPI 3.1), generated from the handlers and their types. What a route needs stands in
//! the table of routes, and is put in from there.

use axum::Json;
use axum::extract::State;
use utoipa::OpenApi;
use utoipa::openapi::path::{HttpMethod, Operation};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, ContentBuilder, Ref, RefOr};

use super::{
    agent, audit, health, links, live, operation, parts, policy, read, runs, tokens, upload, visibility, webhooks,
};
use crate::access::{Need, Route};
use crate::error;
use crate::state::AppState;

#[derive(OpenApi)]
#[openapi(
    info(title = "Plimsoll", description = "Performance snapshots of model services: runs, reports, verdicts."),
    components(schemas(error::Body)),
    paths(
        health::alive,
        health::ready,
        operation::metrics,
        operation::doctor,
        upload::post,
        parts::begin,
        parts::append,
        parts::finish,
        read::snapshot,
        read::report,
        read::stored_comparison,
        read::comparison,
        read::projects,
        read::project,
        read::history,
        read::pinned_load,
        runs::create,
        runs::list,
        runs::get,
        runs::cancel,
        live::events,
        runs::runners,
        agent::reach,
        agent::claim,
        agent::heartbeat,
        agent::end,
        policy::get,
        policy::put,
        webhooks::list,
        webhooks::create,
        webhooks::remove,
        links::get,
        links::put,
        links::remove,
        visibility::get,
        visibility::put,
        tokens::list,
        tokens::create,
        tokens::revoke,
        audit::list,
    )
)]
struct Described;

/// The name of the one way to sign a request.
const BEARER: &str = "token";

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", responses((status = 200, description = "OpenAPI 3.1")))]
pub(super) async fn document(State(state): State<AppState>) -> Json<utoipa::openapi::OpenApi> {
    Json(describe(super::routes(&state).table()))
}

/// The description of the routes in `table`; a route that no handler describes is left out, which a test refuses.
pub fn describe(table: &[Route]) -> utoipa::openapi::OpenApi {
    let mut described = Described::openapi();
    let mut own = utoipa::openapi::path::Paths::new();
    own.add_path_operation(
        "/api/v1/openapi.json",
        vec![HttpMethod::Get],
        <__path_document as utoipa::Path>::operation(),
    );
    described.paths.merge(own);
    let components = described.components.get_or_insert_with(Components::new);
    components.add_security_scheme(BEARER, SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    for route in table {
        let item = described.paths.paths.get_mut(&route.path);
        let operation = item.and_then(|item| match route.method.as_str() {
            "GET" => item.get.as_mut(),
            "POST" => item.post.as_mut(),
            "PUT" => item.put.as_mut(),
            "PATCH" => item.patch.as_mut(),
            "DELETE" => item.delete.as_mut(),
            _ => None,
        });
        if let Some(operation) = operation {
            complete(operation, route);
        }
    }
    described
}

fn complete(operation: &mut Operation, route: &Route) {
    operation.operation_id = Some(id(route));
    operation.tags = None;
    let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    let failed =
        ResponseBuilder::new().description("A problem (RFC 9457)").content("application/problem+json", problem);
    operation.responses.responses.entry("default".to_owned()).or_insert_with(|| RefOr::T(failed.build()));
    let scope = match route.need {
        Need::Open | Need::Signed | Need::Known => None,
        Need::Filtered => Some("shows what the caller may read".to_owned()),
        Need::Project(scope) | Need::Run(scope) | Need::Named(scope) => {
            Some(format!("needs the scope `{}` for the project", scope.name()))
        }
        Need::Server(scope) => Some(format!("needs the scope `{}` for the whole server", scope.name())),
    };
    let Some(scope) = scope else {
        operation.security = Some(Vec::new());
        return;
    };
    let token = SecurityRequirement::new::<_, [String; 0], String>(BEARER, []);
    // Public projects are read without a token.
    let reads = matches!(route.need, Need::Filtered | Need::Project(crate::access::Scope::Read))
        || matches!(route.need, Need::Run(crate::access::Scope::Read));
    let mut ways = vec![token];
    if reads {
        ways.push(SecurityRequirement::default());
    }
    operation.security = Some(ways);
    let said = operation.description.take().map(|text| format!("{text}\n\n")).unwrap_or_default();
    operation.description = Some(format!("{said}It {scope}."));
}

/// `get_projects_project_snapshots`
fn id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/api/v1").replace(['{', '}'], "").replace(['/', '-', '.'], "_");
    format!("{}{path}", route.method.as_str().to_ascii_lowercase())
}
