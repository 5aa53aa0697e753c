//! A mistake in the flags as one sentence. clap spreads it over several lines, which a service's log cuts apart.

use dtkc_cli::Usage;

/// What clap says about a mistake, in one sentence.
pub fn sentence(error: &clap::Error) -> Usage {
    let text = error.render().to_string();
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
    Usage(sentence + "; see dtkc-serve --help")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ServeConfig;
    use clap::Parser;

    #[test]
    fn mistakes_are_one_line_with_the_remedy() {
        let said = |args: &[&str]| {
            let error = ServeConfig::try_parse_from(std::iter::once(&"dtkc-serve").chain(args)).unwrap_err();
            sentence(&error).to_string()
        };
        for (args, expected) in [
            (&["--prot", "1"][..], "unexpected argument '--prot' found; a similar argument exists: '--port'"),
            (&["--port", "99999"], "invalid value '99999' for '--port <PORT>': 99999 is not in 0..=65535"),
            (
                &["--log-format", "xml"],
                "invalid value 'xml' for '--log-format <LOG_FORMAT>'; possible values: text, json",
            ),
            (&["--tls-cert", "a.pem"], "the following required arguments were not provided: --tls-key <FILE>"),
            (&["--model"], "a value is required for '--model <NAME|PATH>' but none was supplied"),
            (&["model.onnx"], "unexpected argument 'model.onnx' found"),
        ] {
            assert_eq!(said(args), format!("{expected}; see dtkc-serve --help"));
        }
    }
}
