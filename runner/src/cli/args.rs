//! Commands and flags.

use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use plimsoll_domain::ids::{CommitSha, ProjectSlug, RunId};
use plimsoll_domain::job::Wanted;
use plimsoll_domain::plan::Profile;

use super::environment;
use crate::exit::{self, Failure};
use crate::git::Named;
use crate::plan::{self, Names, Overrides};
use crate::upload::{Server, Token};

/// Measures how much load a release of a model service carries, and says when the next one carries less.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, after_help = exit::HELP, max_term_width = 100)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
    /// Print one JSON document on stdout, on failure too.
    #[arg(long, global = true)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a first, commented plan.
    #[command(after_help = exit::HELP)]
    Init(InitArgs),
    /// Validate the plan and print what would be sent; sends nothing.
    #[command(after_help = exit::HELP)]
    Check(PlanArgs),
    /// Measure: smoke, warm-up, staircase, stability; writes a report.
    #[command(after_help = exit::HELP)]
    Run(RunArgs),
    /// Compare two reports without a server; ends by the verdict.
    #[command(after_help = exit::HELP)]
    Compare(CompareArgs),
    /// Send a report to the server. Sending it twice is no harm.
    #[command(after_help = exit::HELP)]
    Upload(UploadArgs),
    /// Measure, upload, and end by the server's verdict.
    #[command(after_help = exit::HELP)]
    Gate(GateArgs),
    /// Have a runner of the server measure a revision.
    #[command(after_help = exit::HELP)]
    Submit(SubmitArgs),
    /// Follow a run of the server, and end by its verdict.
    #[command(after_help = exit::HELP)]
    Watch(WatchArgs),
    /// End a run of the server before its time.
    #[command(after_help = exit::HELP)]
    Cancel(CancelArgs),
    /// The thresholds of a project.
    #[command(subcommand, after_help = exit::HELP)]
    Policy(PolicyCommand),
    /// Take jobs from the server and measure them, unattended; docs/runner.md shows its configuration.
    #[cfg(target_os = "linux")]
    #[command(after_help = exit::HELP)]
    Agent(AgentArgs),
    /// Started by the agent.
    #[cfg(target_os = "linux")]
    #[command(name = crate::agent::supervisor::COMMAND, hide = true)]
    Supervise,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
pub(super) struct AgentArgs {
    /// The agent's configuration.
    #[arg(long, value_name = "FILE", default_value = crate::agent::config::FILE)]
    pub(super) config: PathBuf,
    /// End after one job.
    #[arg(long)]
    pub(super) once: bool,
    /// Only look whether it could work.
    #[arg(long, conflicts_with = "once")]
    pub(super) check: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Make the plan's [gate] the project's thresholds on the server.
    #[command(after_help = exit::HELP)]
    Push(PolicyArgs),
}

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// The file to write.
    #[arg(long, value_name = "FILE", default_value = plan::FILE)]
    pub(super) plan: PathBuf,
    /// Address of the service, with the path that takes requests.
    #[arg(long, default_value = "http://127.0.0.1:8000/predict")]
    pub(super) url: String,
    /// The project's name; else the folder's.
    #[arg(long)]
    pub(super) project: Option<ProjectSlug>,
    /// Overwrite an existing file.
    #[arg(long)]
    pub(super) force: bool,
}

/// What to send, and how long.
#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    /// The plan.
    #[arg(long, value_name = "FILE", default_value = plan::FILE)]
    pub(super) plan: PathBuf,
    /// standard: about 25 min; pr: the pinned load and one capacity step, at most 8 min; quick: about 2 min.
    #[arg(long, value_enum)]
    pub(super) profile: Option<ProfileName>,
    /// The service's address instead of the plan's; without a path it keeps the plan's path.
    #[arg(long)]
    pub(super) url: Option<String>,
    /// The project instead of the plan's.
    #[arg(long)]
    pub(super) project: Option<ProjectSlug>,
    /// Rising numbers of workers.
    #[arg(long, value_name = "5,10,20", value_parser = staircase)]
    pub(super) staircase: Option<Stairs>,
    /// Length of a step of the staircase.
    #[arg(long, value_name = "30s", value_parser = duration)]
    pub(super) step: Option<u64>,
    /// Length of the stability phase.
    #[arg(long, value_name = "5m", value_parser = duration)]
    pub(super) stability: Option<u64>,
    /// Workers of the stability phase. Pins the load without changing the plan's digest.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(plan::MAX_WORKERS)))]
    pub(super) stability_workers: Option<u32>,
    /// A report whose stability load is used when no flag and no plan names one, and to compare with.
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,
    /// Name of the host of the service.
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(super) testbed: Option<String>,
    /// A label of the host of the service; may be given several times.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(super) labels: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) plan: PlanArgs,
    /// Where to write the report [default: plimsoll/<UTC time>-<revision>/report.json].
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) revision: RevisionArgs,
    #[command(flatten)]
    pub(super) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct GateArgs {
    #[command(flatten)]
    pub(super) run: RunArgs,
    /// Also write the verdict as Markdown, for the summary of a CI job.
    #[arg(long, value_name = "FILE")]
    pub(super) summary: Option<PathBuf>,
    #[command(flatten)]
    pub(super) retry: RetryArgs,
}

/// How patient a command is with the server.
#[derive(Debug, Args)]
pub(super) struct RetryArgs {
    /// How long to try again while the server cannot be reached.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = humantime::parse_duration)]
    pub(super) retry_for: Duration,
}

#[derive(Debug, Args)]
pub(super) struct SubmitArgs {
    /// The project to measure.
    #[arg(long)]
    pub(super) project: ProjectSlug,
    #[command(flatten)]
    pub(super) git: GitArgs,
    /// The plan in the repository, when it is not where the runner looks for it.
    #[arg(long, value_name = "PATH")]
    pub(super) plan: Option<String>,
    /// Instead of the plan's own.
    #[arg(long, value_enum)]
    pub(super) profile: Option<ProfileName>,
    /// What the runner must have, for example gpu=A10; may be given several times.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(super) labels: Vec<(String, String)>,
    /// Follow the run, and end by its verdict.
    #[arg(long)]
    pub(super) wait: bool,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) retry: RetryArgs,
}

#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// The run's id, as `submit` prints it.
    #[arg(value_name = "RUN")]
    pub(super) run: RunId,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) retry: RetryArgs,
}

#[derive(Debug, Args)]
pub(super) struct CancelArgs {
    /// The run's id, as `submit` prints it.
    #[arg(value_name = "RUN")]
    pub(super) run: RunId,
    /// Why, in a sentence for people.
    #[arg(long, value_name = "TEXT", default_value = "cancelled on the command line", value_parser = name)]
    pub(super) reason: String,
    #[command(flatten)]
    pub(super) server: ServerArgs,
}

/// What git, or its host, calls a revision. What is measured here needs only what differs from the checkout.
#[derive(Debug, Args)]
pub(super) struct GitArgs {
    /// A tag, or another name for the commit.
    #[arg(long, value_parser = name)]
    pub(super) tag: Option<String>,
    /// The commit.
    #[arg(long, value_name = "SHA")]
    pub(super) commit: Option<CommitSha>,
    /// The branch, or the one that the commit is on.
    #[arg(long, value_parser = name)]
    pub(super) branch: Option<String>,
    /// The pull request that the revision belongs to.
    #[arg(long, value_name = "NUMBER")]
    pub(super) pull_request: Option<u64>,
}

/// What is measured. By default the checkout that the plan lies in says so.
#[derive(Debug, Args)]
pub(super) struct RevisionArgs {
    /// What is measured: a commit when it is hexadecimal, else a tag.
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(super) revision: Option<String>,
    #[command(flatten)]
    pub(super) git: GitArgs,
    /// Inference engine and version, for example "onnxruntime 1.22".
    #[arg(long, value_parser = name)]
    pub(super) engine: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ServerArgs {
    /// Address of the Plimsoll server.
    #[arg(long, value_name = "URL", env = "PLIMSOLL_SERVER")]
    pub(super) server: Option<String>,
    /// A token of the server.
    #[arg(long, env = "PLIMSOLL_TOKEN", hide_env_values = true)]
    pub(super) token: Option<String>,
    /// File with the token.
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_TOKEN_FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// In GitHub Actions: be known as this workflow, by an identity token made out to this address, the server's.
    #[arg(long, value_name = "URL", env = "PLIMSOLL_OIDC_AUDIENCE")]
    pub(super) oidc_audience: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// The report to compare with.
    #[arg(value_name = "A.json")]
    pub(super) baseline: PathBuf,
    /// The report to judge.
    #[arg(value_name = "B.json")]
    pub(super) candidate: PathBuf,
    /// A plan whose [gate] holds the thresholds; else +10 % P99, −5 % capacity, +0.1 pp errors.
    #[arg(long, value_name = "FILE")]
    pub(super) plan: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct UploadArgs {
    #[arg(value_name = "REPORT")]
    pub(super) report: PathBuf,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) retry: RetryArgs,
}

#[derive(Debug, Args)]
pub(super) struct PolicyArgs {
    /// The plan.
    #[arg(long, value_name = "FILE", default_value = plan::FILE)]
    pub(super) plan: PathBuf,
    /// The project instead of the plan's.
    #[arg(long)]
    pub(super) project: Option<ProjectSlug>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ProfileName {
    Standard,
    Pr,
    Quick,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Standard => Self::Standard,
            ProfileName::Pr => Self::Pr,
            ProfileName::Quick => Self::Quick,
        }
    }
}

/// Worker counts of a staircase, rising.
#[derive(Debug, Clone)]
pub(super) struct Stairs(Vec<u32>);

impl PlanArgs {
    pub(super) fn overrides(&self) -> Overrides {
        Overrides {
            profile: self.profile.map(Profile::from),
            project: self.project.clone(),
            url: self.url.clone(),
            staircase: self.staircase.as_ref().map(|stairs| stairs.0.clone()),
            step_ms: self.step,
            stability_ms: self.stability,
        }
    }

    /// The plan's names of the host with those of the flags.
    pub(super) fn names(&self, planned: &Names) -> Names {
        let mut names = planned.clone();
        names.name = self.testbed.clone().or(names.name);
        names.labels.extend(self.labels.iter().cloned());
        names
    }
}

impl GitArgs {
    pub(super) fn wanted(&self) -> Wanted {
        Wanted {
            commit: self.commit.clone(),
            tag: self.tag.clone(),
            branch: self.branch.clone(),
            pull_request: self.pull_request,
            merge_base: None,
        }
    }
}

impl RevisionArgs {
    pub(super) fn named(&self) -> Named {
        Named {
            revision: self.revision.clone(),
            tag: self.git.tag.clone(),
            commit: self.git.commit.clone(),
            branch: self.git.branch.clone(),
            pull_request: self.git.pull_request,
            engine: self.engine.clone(),
        }
    }
}

impl ServerArgs {
    /// The server, when one is named.
    pub(super) fn optional(&self) -> Result<Option<Server>, Failure> {
        let named = self.server.as_deref().filter(|address| !address.is_empty());
        let Some(address) = named else { return Ok(None) };
        let server = Server::new(address, self.given()?)?;
        let audience = self.oidc_audience.as_deref().filter(|audience| !audience.is_empty());
        match audience {
            Some(audience) => Ok(Some(server.known_by(Token::of_workflow(audience, &environment)?))),
            None => Ok(Some(server)),
        }
    }

    /// The token itself, or that in the file.
    fn given(&self) -> Result<Option<String>, Failure> {
        const LONGEST: u64 = 16 << 10;
        let given = self.token.clone().filter(|token| !token.is_empty());
        let file = self.token_file.as_deref().filter(|path| !path.as_os_str().is_empty());
        let audience = self.oidc_audience.as_deref().is_some_and(|audience| !audience.is_empty());
        if u8::from(given.is_some()) + u8::from(file.is_some()) + u8::from(audience) > 1 {
            return Err(Failure::usage("more than one of --token, --token-file and --oidc-audience is given")
                .hint("they may come by PLIMSOLL_TOKEN, PLIMSOLL_TOKEN_FILE and PLIMSOLL_OIDC_AUDIENCE: leave one"));
        }
        let Some(path) = file else { return Ok(given) };
        let broken = |why: String| Failure::usage(format!("--token-file {}: {why}", path.display()));
        let file = std::fs::File::open(path).map_err(|error| broken(error.to_string()))?;
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).map_err(|error| broken(error.to_string()))?;
        let token = text.trim();
        if token.is_empty() { Err(broken("it is empty".to_owned())) } else { Ok(Some(token.to_owned())) }
    }

    /// The server of a command that cannot do without.
    pub(super) fn needed(&self) -> Result<Server, Failure> {
        self.optional()?.ok_or_else(|| {
            Failure::usage("no server is named").hint("set PLIMSOLL_SERVER, or give --server https://plimsoll.example")
        })
    }
}

fn staircase(text: &str) -> Result<Stairs, String> {
    let number = |part: &str| {
        let workers = part.trim().parse().ok().filter(|workers| (1..=plan::MAX_WORKERS).contains(workers));
        workers.ok_or_else(|| format!("{part:?} is no number of workers from 1 to {}", plan::MAX_WORKERS))
    };
    let workers = text.split(',').map(number).collect::<Result<Vec<u32>, _>>()?;
    plan::rising(&workers).map_err(|why| format!("the staircase {why}"))?;
    Ok(Stairs(workers))
}

fn duration(text: &str) -> Result<u64, String> {
    plan::duration_ms(text, plan::SHORTEST_MS).map_err(|why| format!("the duration {why}"))
}

/// What is said before a long run would else be said by the reader of its report.
fn name(text: &str) -> Result<String, String> {
    const LONGEST: usize = 200;
    if text.is_empty() || text.chars().count() > LONGEST || text.contains(char::is_control) {
        return Err(format!("a name has 1 to {LONGEST} characters, none of them a control character"));
    }
    Ok(text.to_owned())
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((name(key)?, name(value)?)),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}
