//! A real Chromium, driven by its driver.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thirtyfour::LoggingPrefsLogLevel;
use thirtyfour::prelude::*;

/// What a page shows and says.
pub(crate) struct Seen {
    pub(crate) inner_width: f64,
    pub(crate) scroll_width: f64,
    pub(crate) text: String,
    pub(crate) dark: bool,
    pub(crate) console: Vec<String>,
}

pub(crate) struct Browser {
    pub(crate) driver: WebDriver,
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
    pub(crate) async fn start() -> Self {
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

    pub(crate) async fn look(&self, url: &str, width: u32, scheme: &str) -> Result<Seen, String> {
        self.open(url, width, scheme).await.map_err(|error| error.to_string())
    }

    async fn open(&self, url: &str, width: u32, scheme: &str) -> WebDriverResult<Seen> {
        let cdp = self.driver.cdp();
        let screen = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        cdp.send_raw("Emulation.setDeviceMetricsOverride", screen).await?;
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        cdp.send_raw("Emulation.setEmulatedMedia", media).await?;
        self.driver.goto(url).await?;
        self.see().await
    }

    /// The page that is open, at this width.
    pub(crate) async fn at_width(&self, width: u32) -> WebDriverResult<Seen> {
        let screen = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.driver.cdp().send_raw("Emulation.setDeviceMetricsOverride", screen).await?;
        self.see().await
    }

    /// Waits until the text that is in sight of this element holds `text`, and returns it. The page may change below.
    pub(crate) async fn until(&self, selector: &str, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.driver.execute(TEXT, vec![json!(selector)]).await.expect("the browser answers");
            let found = found.json().as_str().unwrap_or_default().to_owned();
            if found.contains(text) {
                return found;
            }
            assert!(Instant::now() < deadline, "{selector} does not say {text:?} but {found:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn click(&self, selector: &str) {
        self.element(selector).await.click().await.unwrap_or_else(|e| panic!("{selector}: {e}"));
    }

    pub(crate) async fn fill(&self, selector: &str, text: &str) {
        self.element(selector).await.send_keys(text).await.unwrap_or_else(|e| panic!("{selector}: {e}"));
    }

    async fn element(&self, selector: &str) -> WebElement {
        self.driver.find(By::Css(selector)).await.unwrap_or_else(|e| panic!("{selector}: {e}"))
    }

    async fn see(&self) -> WebDriverResult<Seen> {
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

    pub(crate) async fn quit(self) {
        let Self { driver, chromedriver } = self;
        let quit = driver.quit().await;
        drop(chromedriver);
        quit.expect("the browser ends");
    }
}

/// As root, Postgres runs as another user, who must pass through.
pub(crate) fn reachable() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}

/// Where the program lies.
fn installed(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("{program} is missing: run `scripts/setup --tests`"))
}

/// For a page that follows something.
const PATIENCE: Duration = Duration::from_secs(30);

const TEXT: &str = "return document.querySelector(arguments[0])?.innerText ?? '';";

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
