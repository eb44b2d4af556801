//! The first page of the guide works as it is typed.
//!
//! Method: the commands and their output are read out of `docs/guide/gateway.md` and run in a network
//! namespace of their own, where their ports are free.

use crate::processes::until;
use crate::rig::{Namespace, ready};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// A command of the page, and the lines below it.
struct Example {
    command: String,
    printed: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn examples() -> Vec<Example> {
    let page = fs::read_to_string(root().join("docs/guide/gateway.md")).expect("the guide");
    let section = page.split("## On one laptop").nth(1).expect("its section");
    let section = section.split("\n## ").next().expect("the section's text");
    let mut examples: Vec<Example> = Vec::new();
    for line in section.lines().filter_map(|line| line.strip_prefix("    ")) {
        if let Some(command) = line.strip_prefix("$ ") {
            examples.push(Example {
                command: command.to_owned(),
                printed: Vec::new(),
            });
        } else if let Some(example) = examples.last_mut() {
            example.printed.push(line.to_owned());
        }
    }
    examples
}

/// A command of the page that is killed when the test ends.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn the_guides_first_commands_print_what_it_says() {
    if !ready(&["curl"]) {
        return;
    }
    let laptop = Namespace::new("laptop");
    let place = tempfile::tempdir().unwrap();
    let binary = assert_cmd::cargo::cargo_bin!("fulmar");
    let examples = examples();
    assert_eq!(examples.len(), 4, "under five commands");
    let mut started = Vec::new();
    for (n, example) in examples.iter().enumerate() {
        let path = place.path().join(n.to_string());
        let run = || {
            let output = File::create(&path).unwrap();
            let errors = output.try_clone().unwrap();
            let words = example.command.split_whitespace();
            let mut words = words.map(|word| match word {
                "fulmar" => binary.to_str().unwrap(),
                word => word,
            });
            let mut command = laptop.command(words.next().unwrap());
            command.args(words).current_dir(root());
            command.env("XDG_STATE_HOME", place.path());
            if example.command.contains("gateway -c") {
                // As on a terminal.
                command.args(["--log-format", "text"]);
            }
            command
                .stdout(Stdio::from(output))
                .stderr(Stdio::from(errors));
            Started(command.spawn().unwrap())
        };
        started.push(run());
        if example.command.starts_with("curl") {
            // Somebody who types takes longer than the gateways to find each other.
            until("the page", || {
                let done = started.last_mut().unwrap().0.wait().unwrap().success();
                if !done {
                    started.push(run());
                }
                done
            });
        } else {
            // The first line says that it runs.
            until(&example.command, || {
                fs::metadata(&path).is_ok_and(|file| file.len() > 0)
            });
        }
    }
    for (n, example) in examples.iter().enumerate() {
        let path = place.path().join(n.to_string());
        let printed = || fs::read_to_string(&path).unwrap();
        for line in &example.printed {
            until(&format!("{line:?} of {:?}", example.command), || {
                printed().contains(line.as_str())
            });
        }
    }
}
