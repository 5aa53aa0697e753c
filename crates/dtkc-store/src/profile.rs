//! `~/.aws/credentials` and `~/.aws/config`: what `aws configure` writes.

use std::path::{Path, PathBuf};

/// What a profile says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) key_id: Option<String>,
    pub(crate) secret: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
}

impl Profile {
    /// The profile that the environment names, or the default one.
    pub(crate) fn of_environment() -> Self {
        let name =
            std::env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "default".into());
        let mut profile = Self::default();
        for (variable, file, prefix) in
            [("AWS_SHARED_CREDENTIALS_FILE", "credentials", ""), ("AWS_CONFIG_FILE", "config", "profile ")]
        {
            if let Some(text) = path(variable, file).and_then(|path| read(&path)) {
                profile.learn(&text, &name, prefix);
            }
        }
        profile
    }

    /// Takes what the section of a profile says and is not known yet.
    fn learn(&mut self, text: &str, name: &str, prefix: &str) {
        let mut inside = false;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                let section = section.trim();
                inside = section == name || section.strip_prefix(prefix).is_some_and(|rest| rest.trim() == name);
                continue;
            }
            let Some((key, value)) = line.split_once('=').filter(|_| inside && !line.starts_with(['#', ';'])) else {
                continue;
            };
            let place = match key.trim() {
                "aws_access_key_id" => &mut self.key_id,
                "aws_secret_access_key" => &mut self.secret,
                "aws_session_token" => &mut self.token,
                "region" => &mut self.region,
                "endpoint_url" => &mut self.endpoint,
                _ => continue,
            };
            place.get_or_insert_with(|| value.trim().to_owned());
        }
    }
}

fn path(variable: &str, file: &str) -> Option<PathBuf> {
    match std::env::var_os(variable).filter(|path| !path.is_empty()) {
        Some(path) => Some(path.into()),
        None => Some(std::env::home_dir()?.join(".aws").join(file)),
    }
}

/// A small text file; what is large, or no file, is none of these.
fn read(path: &Path) -> Option<String> {
    let meta = std::fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() < 1 << 20)?;
    let text = std::fs::read_to_string(path).ok()?;
    (text.len() as u64 <= meta.len()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_its_section_of_both_files() {
        let credentials =
            "[default]\naws_access_key_id = A\naws_secret_access_key=s=1\n\n# [work]\n[work]\naws_access_key_id=B\n";
        let config = "[default]\nregion = eu-west-1\n[profile work]\n; region = no\nregion=us-west-2\ns3 =\n  x = y\nendpoint_url = http://h\n";
        let of = |name: &str| {
            let mut profile = Profile::default();
            profile.learn(credentials, name, "");
            profile.learn(config, name, "profile ");
            profile
        };
        let text = |text: &str| Some(text.to_owned());
        let default = of("default");
        assert_eq!((default.key_id, default.secret, default.region), (text("A"), text("s=1"), text("eu-west-1")));
        let work = of("work");
        assert_eq!((work.key_id, work.secret, work.region), (text("B"), None, text("us-west-2")));
        assert_eq!(work.endpoint, text("http://h"));
        assert_eq!(of("none"), Profile::default());
    }
}
