//! Keys, rate limits, CORS, TLS, metrics, headers.
#![allow(clippy::unwrap_used)]

mod common;

use common::{SIDE, Server, png};

const S: u32 = SIDE as u32;

#[test]
fn no_key_a_wrong_key_and_a_right_key() {
    let server = Server::start(&["--api-key", "first-key", "--api-key", "second-key"]);
    let image = png(S, S, 1);
    let answer = server.post("/v1/assign", "image/png", &image).expect(401, "key_missing");
    assert_eq!(answer.header("www-authenticate"), "Bearer");
    let with = |name, value| server.post_with("/v1/assign", &[("content-type", "image/png"), (name, value)], &image);
    with("x-api-key", "wrong").expect(401, "key_wrong");
    with("authorization", "Bearer first-key ").status.eq(&200).then_some(()).unwrap();
    assert_eq!(with("authorization", "Bearer second-key").status, 200);
    assert_eq!(with("x-api-key", "first-key").status, 200);
    server.get("/v1/models").expect(401, "key_missing");
    server.get("/v2/models/small").expect(401, "key_missing");
    server.post("/v2/models/small/infer", "application/json", b"{}").expect(401, "key_missing");
    server.post("/v1/models/small/reload", "application/json", b"").expect(401, "key_missing");
    let name = [("content-type", "application/json")];
    server.put("/v1/models/small/clusters/0", &name, b"{\"name\": \"x\"}").expect(401, "key_missing");
    for open in
        ["/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs/", "/v2/health/live", "/v2/health/ready"]
    {
        assert_eq!(server.get(open).status, 200, "{open}");
    }
}

/// Ways to write one path that some part of a server might take for another one.
fn spellings(path: &str, host: std::net::SocketAddr) -> Vec<String> {
    let encoded = |which: &dyn Fn(usize, char) -> bool| -> String {
        let each = |(i, c): (usize, char)| match c != '/' && which(i, c) {
            true => format!("%{:02x}", c as u32),
            false => c.to_string(),
        };
        path.chars().enumerate().map(each).collect()
    };
    vec![
        path.to_owned(),
        encoded(&|i, _| i == 1),
        encoded(&|i, _| i == 2),
        encoded(&|_, c| c.is_ascii_alphanumeric()),
        encoded(&|i, _| i == path.len() - 1),
        encoded(&|_, _| true).to_uppercase(),
        path.replacen('/', "/%2e/", 1),
        path.replacen('/', "//", 1),
        path.replacen("/v", "/./v", 1),
        path.replacen("/v", "/docs/../v", 1),
        path.replacen("/v", "/healthz/../v", 1),
        path.replacen("/v", "/docs/..%2fv", 1),
        path.replacen("/v", "/v2/health/../../v", 1),
        path[1..].replace('/', "%2f").replacen("v", "/v", 1),
        path[1..].replace('/', "//").replacen("v", "/v", 1),
        path.to_uppercase(),
        format!("{path}/"),
        format!("{path}?"),
        format!("{path};x=1"),
        format!("{path}%00"),
        format!("http://{host}{path}"),
        format!("http://{host}/{}", encoded(&|i, _| i == 1)),
    ]
}

/// No way to write a guarded path leads past the guard, or past the rate limit.
#[test]
fn no_spelling_of_a_path_gets_around_the_key() {
    let server = Server::start(&["--api-key", "secret"]);
    let description = server.get("/openapi.json").json();
    let mut tried = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        let path = path.replace("{model}", "small").replace("{cluster}", "0").replace("{version}", "1");
        for (method, operation) in methods.as_object().unwrap() {
            let method = method.to_uppercase();
            let guarded = operation.get("security").is_some();
            assert_eq!(server.spelled(&method, &path, "").0 == 401, guarded, "{method} {path} is described otherwise");
            if !guarded {
                continue;
            }
            for spelled in spellings(&path, server.address()) {
                for method in [&method, "HEAD", "get", "OPTIONS"] {
                    let (status, text) = server.spelled(method, &spelled, "");
                    assert!([400, 401, 404, 405].contains(&status), "{method} {spelled}: {text}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 500, "{tried}");
    let key = "x-api-key: secret\r\n";
    assert_eq!(server.spelled("GET", "/%761/models", key).0, 200, "with a key any spelling may be used");
    assert_eq!(server.metric("dtkc_requests_total{endpoint=\"/v1/models\",method=\"GET\",status=\"200\"}"), 1.0);
}

#[test]
fn no_spelling_of_a_path_gets_around_the_rate_limit() {
    let server = Server::start(&["--rate-limit", "3/h"]);
    for path in ["/v1/models", "/%761/models", "/v1/model%73"] {
        assert_eq!(server.spelled("GET", path, "").0, 200, "{path}");
    }
    for path in ["/v1/models", "/%761/models", "/v2", "/made/up"] {
        assert_eq!(server.spelled("GET", path, "").0, 429, "{path}");
    }
}

#[test]
fn keys_cannot_be_guessed_at_the_speed_of_the_network() {
    let server = Server::start(&["--api-key", "secret", "--wrong-key-limit", "3/h"]);
    let with = |key: &str| server.get_with("/v1/models", &[("x-api-key", key)]);
    assert_eq!(with("secret").status, 200);
    server.get("/v1/models").expect(401, "key_missing");
    for _ in 0..4 {
        with("guess").expect(401, "key_wrong");
    }
    let answer = with("guess").expect(429, "too_many_wrong_keys");
    assert!(answer.header("retry-after").parse::<u64>().unwrap() > 1);
    with("secret").expect(429, "too_many_wrong_keys");
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn only_names_of_this_service_are_answered() {
    let server = Server::start(&["--allowed-host", "clusters.example.org"]);
    let ask = |host: &str, path: &str| {
        let text = server.raw(format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes());
        text.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    for host in ["localhost", "127.0.0.1:8080", "clusters.example.org", "[::1]:1"] {
        assert_eq!((ask(host, "/v1/models"), ask(host, "/")), (200, 200), "{host}");
    }
    for host in ["evil.example", "evil.example:8080", "192.0.2.1"] {
        assert_eq!((ask(host, "/v1/models"), ask(host, "/")), (421, 421), "{host}");
        assert_eq!((ask(host, "/healthz"), ask(host, "/v2/health/live")), (200, 200), "health checks use any name");
    }
}

#[test]
fn pages_of_other_origins_change_nothing_and_cost_nothing() {
    let server = Server::start(&[]);
    let own = server.url.clone();
    let (image, reload) = (png(S, S, 1), "/v1/models/small/reload");
    let post =
        |origin: &str| server.post_with("/v1/assign", &[("content-type", "image/png"), ("origin", origin)], &image);
    assert_eq!(post(&own).status, 200);
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        post(origin).expect(403, "cross_site");
        server.post_with(reload, &[("origin", origin)], b"").expect(403, "cross_site");
        server.put("/v1/models/small/clusters/0", &[("origin", origin)], b"{}").expect(403, "cross_site");
    }
    server.post_with(reload, &[("sec-fetch-site", "same-site")], b"").expect(403, "cross_site");
    assert_eq!(server.post_with(reload, &[], b"").status, 200, "no browser");
}

#[test]
fn head_answers_like_get_without_the_content() {
    let server = Server::start(&[]);
    for path in ["/healthz", "/readyz", "/metrics", "/v2/health/live", "/v1/models", "/openapi.json", "/"] {
        let (status, text) = server.spelled("HEAD", path, "");
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!((status, body), (200, ""), "{path}");
        assert!(head.contains("content-type: "), "{head}");
    }
    let (status, text) = server.spelled("DELETE", "/healthz", "");
    assert!(status == 405 && text.contains("allow: GET, HEAD"), "{text}");
}

#[test]
fn keys_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    std::fs::write(&keys, "# ours\nfrom-the-file\n").unwrap();
    let server = Server::start(&["--api-key-file", keys.to_str().unwrap()]);
    server.get("/v1/models").expect(401, "key_missing");
    assert_eq!(server.get_with("/v1/models", &[("x-api-key", "from-the-file")]).status, 200);
}

#[test]
fn a_client_that_asks_too_often_is_told_to_wait() {
    let server = Server::start(&["--rate-limit", "5/h"]);
    for _ in 0..5 {
        assert_eq!(server.get("/v1/models").status, 200);
    }
    let answer = server.get("/v1/models").expect(429, "rate_limited");
    let wait: u64 = answer.header("retry-after").parse().unwrap();
    assert!((1..=720).contains(&wait), "{wait}");
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn only_allowed_origins_get_the_cors_headers() {
    let server = Server::start(&["--cors", "https://good.example"]);
    let ask = |origin| server.get_with("/v1/models", &[("origin", origin)]);
    assert_eq!(ask("https://good.example").header("access-control-allow-origin"), "https://good.example");
    assert_eq!(ask("https://bad.example").header("access-control-allow-origin"), "");
    let preflight = server.raw(
        b"OPTIONS /v1/assign HTTP/1.1\r\nhost: localhost\r\norigin: https://good.example\r\naccess-control-request-method: POST\r\nconnection: close\r\n\r\n",
    );
    assert!(preflight.starts_with("HTTP/1.1 204"), "{preflight}");
    assert!(preflight.to_lowercase().contains("access-control-allow-methods: get, post, put"), "{preflight}");
    let foreign = [("content-type", "image/png"), ("origin", "https://bad.example"), ("sec-fetch-site", "cross-site")];
    server.post_with("/v1/assign", &foreign, &png(S, S, 1)).expect(403, "cross_site");
    let allowed = [("content-type", "image/png"), ("origin", "https://good.example"), ("sec-fetch-site", "cross-site")];
    assert_eq!(server.post_with("/v1/assign", &allowed, &png(S, S, 1)).status, 200);
    let refused = server.post_with("/v1/assign", &[("origin", "https://good.example")], b"x");
    assert_eq!(refused.header("access-control-allow-origin"), "https://good.example", "errors are readable too");
}

#[test]
fn https_works_and_mismatched_keys_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key, other] = ["cert.pem", "key.pem", "other.pem"].map(|name| folder.path().join(name));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    std::fs::write(&other, rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let mut server = Server::start(&["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]);
    assert!(server.url.starts_with("https://"), "{}", server.url);
    let root = ureq::tls::Certificate::from_der(made.cert.der()).to_owned();
    let roots = ureq::tls::RootCerts::new_with_certs(&[root]);
    let tls = ureq::tls::TlsConfig::builder().root_certs(roots).build();
    server.agent = ureq::Agent::config_builder().http_status_as_error(false).tls_config(tls).build().into();
    server.assert_alive();

    let output = common::command()
        .args(["--port", "0", "--model"])
        .arg(server.model_path())
        .arg("--tls-cert")
        .arg(&cert)
        .arg("--tls-key")
        .arg(&other)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && text.contains("do not fit"), "{text}");
}

#[test]
fn metrics_count_what_happened() {
    let server = Server::start(&[]);
    server.assert_alive();
    server.post("/v1/assign", "image/png", b"no image").expect(422, "not_an_image");
    server.get("/made/up/path");
    let text = server.get("/metrics").text();
    assert!(server.get("/metrics").header("content-type").starts_with("text/plain; version=0.0.4"));
    for line in [
        "dtkc_ready 1",
        "dtkc_images_total{model=\"small\"} 1",
        "dtkc_image_failures_total{model=\"small\",code=\"not_an_image\"} 1",
        "dtkc_errors_total{code=\"not_an_image\"} 1",
        "dtkc_requests_total{endpoint=\"/v1/assign\",method=\"POST\",status=\"200\"} 1",
        "dtkc_requests_total{endpoint=\"/v1/assign\",method=\"POST\",status=\"422\"} 1",
        "dtkc_requests_total{endpoint=\"other\",method=\"GET\",status=\"404\"} 1",
        "dtkc_queue_images{model=\"small\"} 0",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
    }
    for name in [
        "dtkc_queue_seconds",
        "dtkc_inference_seconds",
        "dtkc_batch_images",
        "dtkc_confidence_mean",
        "dtkc_assigned_total",
    ] {
        assert!(text.contains(&format!("# HELP {name} ")) && text.contains(&format!("# TYPE {name} ")), "{name}");
    }
}

#[test]
fn pages_and_answers_carry_their_policies() {
    let server = Server::start(&[]);
    let page = server.get("/");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    let tag = page.header("etag").to_owned();
    assert_eq!(server.get_with("/", &[("if-none-match", &tag)]).status, 304);
    assert_eq!(server.get("/page/app.js").header("content-type"), "text/javascript; charset=utf-8");
    let answer = server.get("/v1/models");
    assert!(answer.header("content-security-policy").contains("default-src 'none'"));
    assert_eq!(answer.header("cache-control"), "no-store");
    let docs = server.get("/docs/");
    assert!(docs.text().contains("swagger-ui") && !docs.text().contains("https://"), "{}", docs.text());
    assert_eq!(server.get("/openapi.json").json()["openapi"].as_str().map(|v| &v[..2]), Some("3."));
}

/// Every path of the description is really there, with that method.
#[test]
fn every_documented_path_answers() {
    let server = Server::start(&[]);
    let description = server.get("/openapi.json").json();
    for (path, methods) in description["paths"].as_object().unwrap() {
        let path = path.replace("{model}", "small").replace("{cluster}", "0");
        for method in methods.as_object().unwrap().keys() {
            let answer = match method.as_str() {
                "get" => server.get(&path),
                "put" => server.put(&path, &[], b""),
                _ => server.post_with(&path, &[], b""),
            };
            assert!(![404, 405].contains(&answer.status), "{method} {path}: {}", answer.status);
        }
    }
}
