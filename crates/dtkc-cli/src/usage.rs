//! A mistake in the flags as one sentence. clap spreads it over several lines, which a log cuts apart.

use clap::error::ErrorKind;
use clap::{Command, Parser};

use crate::Usage;

/// The program's flags. `--help`, `--version` and a call with nothing at all print what they ask for and end the program.
pub fn parse<P: Parser>() -> Result<P, Usage> {
    P::try_parse().map_err(|mistake| match mistake.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => mistake.exit(),
        _ if mistake.use_stderr() => sentence(&mistake, &called(&P::command(), std::env::args().skip(1))),
        _ => mistake.exit(),
    })
}

/// What clap says about a mistake, in one sentence that ends with where to look.
fn sentence(mistake: &clap::Error, called: &str) -> Usage {
    let text = mistake.render().to_string();
    let mut sentence = String::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        let part = line.trim_start_matches("error: ").trim_start_matches("tip: ").trim_matches(['[', ']']);
        match sentence.chars().last() {
            _ if part.is_empty() => continue,
            Some(':') => sentence.push(' '),
            Some(_) => sentence.push_str("; "),
            None => {}
        }
        sentence.push_str(part);
    }
    Usage(format!("{sentence}; see {called} --help"))
}

/// The program with the subcommand that the arguments begin with, if they do.
fn called(program: &Command, mut args: impl Iterator<Item = String>) -> String {
    match args.next().and_then(|first| program.find_subcommand(first)) {
        Some(subcommand) => format!("{} {}", program.get_name(), subcommand.get_name()),
        None => program.get_name().to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Subcommand, ValueEnum};

    #[derive(Debug, Clone, ValueEnum)]
    enum Format {
        Text,
        Json,
    }

    #[derive(Debug, Parser)]
    #[command(name = "dtkc-test")]
    struct Program {
        #[arg(long)]
        port: Option<u16>,
        #[arg(long)]
        format: Option<Format>,
        #[arg(long, requires = "key")]
        cert: Option<String>,
        #[arg(long)]
        key: Option<String>,
        #[command(subcommand)]
        command: Option<Command>,
    }

    #[derive(Debug, Subcommand)]
    enum Command {
        Fit {
            #[arg(long)]
            data: String,
        },
    }

    #[test]
    fn mistakes_are_one_line_with_the_remedy() {
        let said = |args: &[&str]| {
            let mistake = Program::try_parse_from(std::iter::once(&"dtkc-test").chain(args)).unwrap_err();
            sentence(&mistake, &called(&Program::command(), args.iter().map(|&arg| arg.to_owned()))).to_string()
        };
        for (args, expected) in [
            (
                &["--prot", "1"][..],
                "unexpected argument '--prot' found; a similar argument exists: '--port'; see dtkc-test --help",
            ),
            (
                &["--port", "99999"],
                "invalid value '99999' for '--port <PORT>': 99999 is not in 0..=65535; see dtkc-test --help",
            ),
            (
                &["--format", "xml"],
                "invalid value 'xml' for '--format <FORMAT>'; possible values: text, json; see dtkc-test --help",
            ),
            (&["--cert", "a"], "the following required arguments were not provided: --key <KEY>; see dtkc-test --help"),
            (&["--port"], "a value is required for '--port <PORT>' but none was supplied; see dtkc-test --help"),
            (&["fit", "model.onnx"], "unexpected argument 'model.onnx' found; see dtkc-test fit --help"),
            (&["fit"], "the following required arguments were not provided: --data <DATA>; see dtkc-test fit --help"),
            (&["fti"], "unrecognized subcommand 'fti'; see dtkc-test --help"),
        ] {
            assert_eq!(said(args), expected);
        }
    }
}
