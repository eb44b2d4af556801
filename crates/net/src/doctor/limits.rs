//! The limits of the kernel and of the administrator.

use super::finding::Finding;
use crate::descriptors;
use rustix::process::{Resource, getrlimit};
use rustix::system::uname;

/// The open files that a gateway wants: two descriptors for each of 4,096 flows, its default bound.
const OPEN_FILES_WANTED: u64 = 8_192;

/// The kernel's name and release.
pub(super) fn kernel() -> Vec<Finding> {
    let name = uname();
    let found = format!(
        "{} {}",
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy()
    );
    vec![Finding::good("kernel", found)]
}

/// The limit on files and sockets of this process.
pub(super) fn open_files() -> Finding {
    descriptors::raise_limit();
    judge_open_files(getrlimit(Resource::Nofile).maximum)
}

fn judge_open_files(hard: Option<u64>) -> Finding {
    const CHECK: &str = "open files";
    match hard {
        Some(hard) if hard < OPEN_FILES_WANTED => Finding::poor(
            CHECK,
            format!("at most {hard}, about {} flows", hard / 2),
            format!(
                "raise the hard limit: LimitNOFILE={OPEN_FILES_WANTED} in the unit, or ulimit -Hn"
            ),
        ),
        Some(hard) => Finding::good(CHECK, format!("at most {hard}")),
        None => Finding::good(CHECK, "no limit"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingVerdict;

    #[test]
    fn a_low_hard_limit_is_poor_and_says_how_many_flows_it_allows() {
        let finding = judge_open_files(Some(1_024));
        assert_eq!(finding.verdict, FindingVerdict::Poor);
        assert!(finding.found.contains("512 flows"), "{finding:?}");
        assert_eq!(judge_open_files(Some(8_192)).verdict, FindingVerdict::Good);
        assert_eq!(judge_open_files(None).verdict, FindingVerdict::Good);
    }
}
