//! Every method with settings that take a moment.

use std::path::Path;
use std::process::Command;

use dtkc_methods::Method;

const BLOCKS: &str = "network.blocks=[{filters=4,kernel=3,convs=1},{filters=4,kernel=3,convs=1}]";

/// Small networks and few epochs, so that each method takes a moment.
pub fn settings(method: Method) -> Vec<&'static str> {
    let mut settings = vec!["run.comparison_batches=2"];
    settings.extend(match method {
        Method::Dtkc | Method::Ddc | Method::Spectral => vec!["network.hidden=8", BLOCKS],
        Method::Kmeans => vec![],
        Method::Dec | Method::Idec => vec!["update_interval=4"],
        Method::Dcn => vec!["recentre=2"],
        Method::Dbc => vec![BLOCKS, "network.code=3", "pretraining.epochs=3"],
        Method::Spectralnet => vec!["siamese.hidden=[12]", "siamese.epochs=2", "hidden=[12]"],
    });
    if matches!(method, Method::Dec | Method::Idec | Method::Dcn | Method::Spectralnet) {
        settings.extend(["network.hidden=[16,12]", "network.code=4", "pretraining.epochs=3"]);
    }
    settings
}

/// `fit` as the standard library's command, which can be killed.
pub fn fit(method: Method, data: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("dtkc-train"));
    command.args(["fit", "--quiet", "--no-export", "--checkpoint-every", "0s", "--method", method.name()]);
    let usual = [["--clusters", "3"], ["--threads", "1"], ["--batch", "24"], ["--runs", "2"], ["--epochs", "5"]];
    for [flag, value] in usual {
        if !more.contains(&flag) {
            command.args([flag, value]);
        }
    }
    for setting in settings(method) {
        command.args(["--set", setting]);
    }
    command.arg("--data").arg(data).arg("--out").arg(out).args(more);
    command
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
