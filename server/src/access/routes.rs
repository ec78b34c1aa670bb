//! Routes, each with what it needs.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, on};

use super::caller::Scope;
use super::guard;
use crate::state::AppState;

/// What a caller must have for a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing, and nobody asks who calls: health and assets answer while the database is away.
    Open,
    /// A signature over the body, which the handler checks before anything else. Whoever signs is not slowed down: GitHub
    /// sends nothing twice.
    Signed,
    /// Nothing; the page shows who is signed in.
    Known,
    /// Nothing; the handler leaves out what the caller may not read.
    Filtered,
    /// The scope for the `{project}` of the path. Everybody may read a public project.
    Project(Scope),
    /// The scope for the project of the `{run}` of the path, a snapshot or a job.
    Run(Scope),
    /// The scope for some project: which one, the request's body says, and the handler checks with
    /// [`Caller::require`](super::Caller::require).
    Named(Scope),
    /// The scope for the whole server.
    Server(Scope),
}

/// A line of the table of routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub method: Method,
    /// With `{project}` and `{run}` where the need asks for them.
    pub path: String,
    pub need: Need,
}

/// Routes that are guarded, and the table of them.
#[derive(Debug)]
pub struct Routes {
    state: AppState,
    router: Router<AppState>,
    table: Vec<Route>,
}

impl Routes {
    pub fn new(state: &AppState) -> Self {
        Self { state: state.clone(), router: Router::new(), table: Vec::new() }
    }

    #[must_use]
    pub fn get<T: 'static>(self, path: &str, need: Need, handler: impl Handler<T, AppState>) -> Self {
        self.add(Method::GET, MethodFilter::GET, path, need, handler)
    }

    #[must_use]
    pub fn post<T: 'static>(self, path: &str, need: Need, handler: impl Handler<T, AppState>) -> Self {
        self.add(Method::POST, MethodFilter::POST, path, need, handler)
    }

    #[must_use]
    pub fn put<T: 'static>(self, path: &str, need: Need, handler: impl Handler<T, AppState>) -> Self {
        self.add(Method::PUT, MethodFilter::PUT, path, need, handler)
    }

    #[must_use]
    pub fn patch<T: 'static>(self, path: &str, need: Need, handler: impl Handler<T, AppState>) -> Self {
        self.add(Method::PATCH, MethodFilter::PATCH, path, need, handler)
    }

    #[must_use]
    pub fn delete<T: 'static>(self, path: &str, need: Need, handler: impl Handler<T, AppState>) -> Self {
        self.add(Method::DELETE, MethodFilter::DELETE, path, need, handler)
    }

    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.table.extend(other.table);
        self
    }

    /// The routes with their guards.
    pub fn router(self) -> Router<AppState> {
        self.router
    }

    pub fn table(&self) -> &[Route] {
        &self.table
    }

    #[expect(clippy::disallowed_methods, reason = "the one place where a route is added, with its guard")]
    fn add<T: 'static>(
        mut self,
        method: Method,
        filter: MethodFilter,
        path: &str,
        need: Need,
        handler: impl Handler<T, AppState>,
    ) -> Self {
        let guard = from_fn_with_state((self.state.clone(), need), guard::check);
        self.router = self.router.route(path, on(filter, handler).layer(guard));
        self.table.push(Route { method, path: path.to_owned(), need });
        self
    }
}
