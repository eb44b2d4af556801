//! The files and directories that a configuration names. A relative name counts from the configuration's own folder,
//! wherever the gateway is started.

use super::{GatewayConfig, LinkSource, SecurityKind};
use std::path::{Path, PathBuf};

impl GatewayConfig {
    /// Counts relative names of files and directories from `folder`, the folder of the configuration.
    pub fn place_files(&mut self, folder: &Path) {
        for file in self.files() {
            if file.is_relative() {
                *file = folder.join(&*file);
            }
        }
    }

    /// All files and directories that are named.
    fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let keys = match &mut self.security {
            SecurityKind::Noise {
                private_key_file,
                former_private_key_file,
                preset_key_file,
            } => [
                Some(private_key_file),
                former_private_key_file.as_mut(),
                preset_key_file.as_mut(),
            ],
            SecurityKind::Preset { preset_key_file } => [Some(preset_key_file), None, None],
            SecurityKind::None => [None, None, None],
        };
        let logins = self.socks.iter_mut().filter_map(|it| it.login.as_mut());
        let schedules = self.links.iter_mut().filter_map(|it| match &mut it.source {
            LinkSource::Schedule(file) => Some(file),
            LinkSource::Socket(_) | LinkSource::Dlep { .. } | LinkSource::Device { .. } => None,
        });
        let recordings = [&mut self.capture, &mut self.trace];
        keys.into_iter()
            .flatten()
            .chain(logins.map(|login| &mut login.password_file))
            .chain(schedules)
            .chain(&mut self.state_dir)
            .chain(&mut self.custody.directory)
            .chain(
                recordings
                    .into_iter()
                    .flatten()
                    .map(|recording| &mut recording.file),
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::config::explain::explain;

    #[test]
    fn every_relative_name_counts_from_the_folder_and_whole_paths_stay() {
        let text = |of: &str| {
            format!(
                "[gateway]\nstate_dir = \"{of}state\"\n\
                 [security]\nkind = \"noise\"\nprivate_key_file = \"{of}new.key\"\nformer_private_key_file = \"{of}old.key\"\n\
                 preset_key_file = \"{of}preset.key\"\n\
                 [[peer]]\nname = \"b\"\npublic_key = \"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n\
                 [[socks]]\nlisten = \"127.0.0.1:1080\"\nuser = \"u\"\npassword_file = \"{of}password\"\n\
                 [[link]]\nname = \"pass\"\nschedule = \"{of}passes.csv\"\n\
                 [custody]\ndirectory = \"{of}custody\"\n\
                 [capture]\nfile = \"{of}a.pcapng\"\n[trace]\nfile = \"{of}a.jsonl\"\n"
            )
        };
        let placed = |of: &str| {
            let mut config = GatewayConfig::read("a.toml", &text(of)).expect("sound");
            config.place_files(Path::new("/etc/fulmar"));
            config
        };
        assert_eq!(placed(""), placed("/etc/fulmar/"));
        let said = explain(&placed("keys/"));
        assert!(
            said.contains("our key is in /etc/fulmar/keys/new.key"),
            "{said}"
        );
        assert_eq!(placed("/srv/"), {
            let whole = GatewayConfig::read("a.toml", &text("/srv/"));
            whole.expect("sound")
        });
        let mut config = placed("");
        assert_eq!(config.files().count(), 9, "as many as the text names");
    }
}
