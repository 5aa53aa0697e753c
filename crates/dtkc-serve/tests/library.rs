//! A service inside another program: told what to do through a channel, without signals and without a terminal.
#![allow(clippy::unwrap_used)]

mod common;

use clap::Parser;
use common::{SIDE, agent, answer, model, png};
use dtkc_serve::{Control, ServeConfig, serve};

#[test]
fn another_program_can_run_a_service_and_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.onnx");
    std::fs::write(&path, model(1)).unwrap();
    let named = format!("mine={}", path.display());
    let config = ServeConfig::parse_from(["dtkc-serve", "--port", "0", "--workers", "1", "--model", &named]);
    let (controls, received) = tokio::sync::mpsc::channel(4);
    let (report, reports) = std::sync::mpsc::channel();
    let service = std::thread::spawn(move || {
        let ready = |ready: &dtkc_serve::Ready| report.send((ready.url.clone(), ready.models[0].name().to_owned()));
        actix_web::rt::System::new().block_on(serve(config, received, |r| ready(r).unwrap()))
    });
    let (url, name) = reports.recv().unwrap();
    assert_eq!(name, "mine");
    let image = png(SIDE as u32, SIDE as u32, 1);
    let post = || agent().post(format!("{url}/v1/assign")).header("content-type", "image/png").send(&image[..]);
    assert_eq!(answer(post()).json()["model"], "mine");
    controls.blocking_send(Control::Reload).unwrap();
    assert_eq!(answer(post()).status, 200);
    controls.blocking_send(Control::Stop).unwrap();
    service.join().unwrap().unwrap();
    assert!(post().is_err(), "nobody listens any more");
}
