//! The pages in a real Chromium: no error in the console, nothing wider than the screen, the verdict in sight.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use jiff::{SignedDuration, Timestamp};
use plimsoll_domain::synthetic::Synthetic;
use serde_json::{Value, json};
use thirtyfour::LoggingPrefsLogLevel;
use thirtyfour::prelude::*;

use crate::support::{Serving, turn};

const WIDTHS: [u32; 2] = [1_280, 390];
const SCHEMES: [&str; 2] = ["light", "dark"];

#[test]
fn pages_fit_phone_and_desk_in_light_and_dark() {
    let _turn = turn();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let wrong = runtime.block_on(look_at_all());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

async fn look_at_all() -> Vec<String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::Builder::new().permissions(reachable()).tempdir().expect("a temporary directory");
    let server = Serving::server(folder.path());
    let pages = seed(&server, folder.path()).await;
    let browser = Browser::start().await;
    let mut wrong = Vec::new();
    for page in &pages {
        for width in WIDTHS {
            for scheme in SCHEMES {
                let seen = browser.look(&page.url, width, scheme).await;
                let complaints = seen.map_or_else(|why| vec![why], |seen| seen.complaints(page, scheme));
                wrong
                    .extend(complaints.into_iter().map(|what| format!("{} at {width} px, {scheme}: {what}", page.url)));
            }
        }
    }
    browser.quit().await;
    wrong
}

/// As root, Postgres runs as another user, who must pass through.
fn reachable() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}

struct Page {
    url: String,
    /// A word that must be in sight, in small letters.
    word: &'static str,
}

/// Three releases, the last one with a third of the pool: regressed.
async fn seed(server: &Serving, data_dir: &Path) -> Vec<Page> {
    let token = std::fs::read_to_string(data_dir.join("token")).expect("the server's token");
    let client = reqwest::Client::new();
    let begin: Timestamp = "2026-03-01T12:00:00Z".parse().expect("an instant");
    let mut ids = Vec::new();
    for (day, (tag, pool)) in [("v1.0.0", 12), ("v1.1.0", 12), ("v1.2.0", 8)].into_iter().enumerate() {
        let started_at = begin + SignedDuration::from_hours(24 * day as i64);
        let report = Synthetic { tag: Some(tag.to_owned()), pool, started_at, ..Synthetic::default() }.report();
        let answer = client
            .post(format!("{}/api/v1/snapshots", server.address))
            .bearer_auth(token.trim())
            .header("content-type", "application/json")
            .body(report.to_json())
            .send()
            .await
            .expect("the server answers");
        assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap_or_default());
        ids.push(report.run_id);
    }
    let page = |path: String, word| Page { url: format!("{}{path}", server.address), word };
    vec![
        page("/".to_owned(), "regressed"),
        page("/sentiment/history".to_owned(), "regressed"),
        page(format!("/sentiment/snapshots/{}", ids[2]), "p99"),
        page(format!("/sentiment/compare/{}...{}", ids[1], ids[2]), "regressed"),
    ]
}

/// What a page shows and says.
struct Seen {
    inner_width: f64,
    scroll_width: f64,
    text: String,
    dark: bool,
    console: Vec<String>,
}

impl Seen {
    fn complaints(&self, page: &Page, scheme: &str) -> Vec<String> {
        let in_sight = self.text.to_lowercase().contains(page.word);
        let wrong = [
            (self.scroll_width > self.inner_width, format!("scrolls to {} px", self.scroll_width)),
            (!in_sight, format!("{:?} is not in sight: {}", page.word, self.text)),
            (self.dark != (scheme == "dark"), "has the colours of the other scheme".to_owned()),
            (!self.console.is_empty(), format!("the console says {:?}", self.console)),
        ];
        wrong.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect()
    }
}

struct Browser {
    driver: WebDriver,
    /// Last: the driver speaks to it until its end.
    chromedriver: Chromedriver,
}

/// Ends with the test, however that ends.
struct Chromedriver(Child);

impl Drop for Chromedriver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Browser {
    async fn start() -> Self {
        let [chromium, chromedriver] = ["chromium", "chromedriver"].map(installed);
        let mut command = Command::new(chromedriver);
        command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut chromedriver = Chromedriver(command.spawn().expect("chromedriver starts"));
        let mut lines = BufReader::new(chromedriver.0.stdout.take().expect("stdout is a pipe")).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        // Read to its end, so that the driver never waits for a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let port = port.expect("chromedriver says its port");
        let driver = WebDriver::new(format!("http://127.0.0.1:{port}"), capabilities(&chromium).expect("capabilities"))
            .await
            .expect("a session");
        Self { driver, chromedriver }
    }

    async fn look(&self, url: &str, width: u32, scheme: &str) -> Result<Seen, String> {
        self.open(url, width, scheme).await.map_err(|error| error.to_string())
    }

    async fn open(&self, url: &str, width: u32, scheme: &str) -> WebDriverResult<Seen> {
        let cdp = self.driver.cdp();
        let screen = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        cdp.send_raw("Emulation.setDeviceMetricsOverride", screen).await?;
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        cdp.send_raw("Emulation.setEmulatedMedia", media).await?;
        self.driver.goto(url).await?;
        let found: Value = self.driver.execute(LOOK, Vec::new()).await?.json().clone();
        let number = |name: &str| found[name].as_f64().unwrap_or(f64::NAN);
        let console = self.driver.browser_log().await?;
        Ok(Seen {
            inner_width: number("inner"),
            scroll_width: number("scroll"),
            text: found["text"].as_str().unwrap_or_default().to_owned(),
            dark: found["dark"] == true,
            console: console.into_iter().map(|entry| format!("{} {}", entry.level, entry.message)).collect(),
        })
    }

    async fn quit(self) {
        let Self { driver, chromedriver } = self;
        let quit = driver.quit().await;
        drop(chromedriver);
        quit.expect("the browser ends");
    }
}

/// Where the program lies.
fn installed(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("{program} is missing: run `scripts/setup --tests`"))
}

/// The text that is in sight: `innerText` leaves out what is hidden.
const LOOK: &str = "
    const background = getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).map(Number);
    return {
        inner: window.innerWidth,
        scroll: document.documentElement.scrollWidth,
        text: document.body.innerText,
        dark: background[0] + background[1] + background[2] < 384,
    };";

fn capabilities(chromium: &Path) -> WebDriverResult<thirtyfour::ChromeCapabilities> {
    let mut capabilities = DesiredCapabilities::chrome();
    capabilities.set_binary(&chromium.display().to_string())?;
    for flag in [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
    ] {
        capabilities.add_arg(flag)?;
    }
    capabilities.set_browser_log_level(LoggingPrefsLogLevel::Severe)?;
    Ok(capabilities)
}
