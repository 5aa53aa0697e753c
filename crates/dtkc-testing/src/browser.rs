//! A real browser, driven through chromedriver's WebDriver protocol.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::{LONG, wait_until};

const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A headless browser with a profile and a download folder of its own.
pub struct Browser {
    driver: Child,
    base: String,
    agent: ureq::Agent,
    /// Its profile and its downloads, removed at the end.
    pub folder: tempfile::TempDir,
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(LONG)).build().into()
}

fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|p| p.is_file())
}

impl Browser {
    /// Starts a browser, or says why there is none. Where DTKC_REQUIRE_BROWSER is set that is a failure.
    pub fn start() -> Option<Self> {
        let driver = find(&["chromedriver"]);
        let program = find(&["chromium", "chromium-browser", "google-chrome"]);
        let (Some(driver), Some(program)) = (driver, program) else {
            let text = "NOT TESTED: no browser is installed (Debian: apt-get install chromium chromium-driver)";
            assert!(std::env::var_os("DTKC_REQUIRE_BROWSER").is_none(), "{text}");
            eprintln!("{text}");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(driver)
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let base = format!("http://127.0.0.1:{port}");
        let mut browser = Self { driver: child, base, agent: agent(), folder };
        wait_until("chromedriver answers", || browser.agent.get(format!("{}/status", browser.base)).call().is_ok());
        let profile = browser.folder.path().join("profile");
        let downloads = browser.downloads();
        std::fs::create_dir_all(&downloads).unwrap();
        let mut args: Vec<String> = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1280,900",
        ]
        .map(String::from)
        .to_vec();
        args.push(format!("--user-data-dir={}", profile.display()));
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {
                "binary": program,
                "args": args,
                "prefs": {"download.default_directory": downloads, "download.prompt_for_download": false},
            },
            "goog:loggingPrefs": {"browser": "ALL"},
            "acceptInsecureCerts": true,
        }}});
        let session = browser.call("POST", "/session", capabilities);
        browser.base = format!("{}/session/{}", browser.base, session["sessionId"].as_str().unwrap());
        Some(browser)
    }

    /// Where files go that a page gives.
    pub fn downloads(&self) -> PathBuf {
        self.folder.path().join("downloads")
    }

    fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let url = format!("{}{path}", self.base);
        let response = match method {
            "GET" => self.agent.get(url).call(),
            "DELETE" => self.agent.delete(url).call(),
            _ => self.agent.post(url).header("content-type", "application/json").send(body.to_string()),
        };
        let text = response.unwrap().body_mut().read_to_string().unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let value = value["value"].clone();
        assert!(value.get("error").is_none(), "{method} {path}: {}", value["message"]);
        value
    }

    /// Opens an address.
    pub fn open(&self, url: &str) {
        self.call("POST", "/url", json!({"url": url}));
    }

    /// Runs a script in the page; the value of its `return` comes back.
    pub fn run(&self, script: &str) -> Value {
        self.call("POST", "/execute/sync", json!({"script": script, "args": []}))
    }

    /// Waits until a script's value is true, however slow the machine is.
    pub fn wait(&self, script: &str) {
        wait_until(script, || self.run(&format!("return Boolean({script})")) == json!(true));
    }

    fn element(&self, selector: &str) -> String {
        let found = self.call("POST", "/element", json!({"using": "css selector", "value": selector}));
        found[ELEMENT].as_str().unwrap().to_owned()
    }

    /// Clicks into the middle of an element.
    pub fn click(&self, selector: &str) {
        // To the middle: at the edge the page's head would lie over it.
        self.run(&format!(
            "document.querySelector('{selector}').scrollIntoView({{block: 'center', behavior: 'instant'}})"
        ));
        self.call("POST", &format!("/element/{}/click", self.element(selector)), json!({}));
    }

    /// Types text into a field.
    pub fn type_into(&self, selector: &str, text: &str) {
        self.call("POST", &format!("/element/{}/value", self.element(selector)), json!({"text": text}));
    }

    /// Puts files into a file field, as a user's choice would.
    pub fn choose(&self, selector: &str, files: &[&Path]) {
        let text: Vec<&str> = files.iter().map(|f| f.to_str().unwrap()).collect();
        self.type_into(selector, &text.join("\n"));
    }

    /// Presses keys where the focus is. Special keys have code points of their own in WebDriver.
    pub fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|c| {
                [json!({"type": "keyDown", "value": c.to_string()}), json!({"type": "keyUp", "value": c.to_string()})]
            })
            .collect();
        self.call("POST", "/actions", json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}));
    }

    /// Shows the page in a window of that size; a narrow one is a phone's.
    pub fn resize(&self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 2, "mobile": width < 600});
        self.devtools("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Asks pages for their dark or their light form.
    pub fn dark(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        self.devtools(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": value}]}),
        );
    }

    /// Moves the pointer over places of the window; with the button held down where `is_held`.
    pub fn pointer(&self, places: &[[f64; 2]], is_held: bool) {
        let place = |[x, y]: &[f64; 2]| json!({"type": "pointerMove", "duration": 0, "x": x.round(), "y": y.round()});
        let mut actions: Vec<Value> = places.iter().map(place).collect();
        if is_held {
            actions.insert(1.min(actions.len()), json!({"type": "pointerDown", "button": 0}));
            actions.push(json!({"type": "pointerUp", "button": 0}));
        }
        let mouse =
            json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions});
        self.call("POST", "/actions", json!({"actions": [mouse]}));
    }

    /// Shows pages as they would be printed, or on the screen again.
    pub fn on_paper(&self, is_on_paper: bool) {
        let media = if is_on_paper { "print" } else { "screen" };
        self.devtools("Emulation.setEmulatedMedia", json!({"media": media}));
    }

    fn devtools(&self, command: &str, parameters: Value) {
        self.call("POST", "/goog/cdp/execute", json!({"cmd": command, "params": parameters}));
    }

    /// A picture of what is visible, written where DTKC_SCREENSHOTS says, if it does.
    pub fn screenshot(&self, name: &str) {
        let Some(folder) = std::env::var_os("DTKC_SCREENSHOTS") else { return };
        let image = self.call("GET", "/screenshot", json!({}));
        let bytes =
            base64::Engine::decode(&base64::engine::general_purpose::STANDARD, image.as_str().unwrap()).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(Path::new(&folder).join(format!("{name}.png")), bytes).unwrap();
    }

    /// What the page complained about: script errors, blocked resources, failed requests.
    pub fn log(&self) -> Vec<String> {
        let entries = self.call("POST", "/se/log", json!({"type": "browser"}));
        let entries = entries.as_array().unwrap().iter();
        let severe = entries.filter(|entry| ["SEVERE", "WARNING"].contains(&entry["level"].as_str().unwrap_or("")));
        severe.map(|entry| entry["message"].as_str().unwrap_or("").to_owned()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ending the session closes the browser; the driver alone would leave it running.
        let _ = self.agent.delete(&self.base).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
