//! iproute2's `ip`, run in the namespace of the calling thread.

use super::address::InterfaceAddress;
use super::error::TunError;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Runs `ip` with `arguments`, separated by blanks.
///
/// # Errors
/// [`TunError::NoIp`], or [`TunError::Ip`] with the command's error message.
pub(super) fn ip(arguments: &str) -> Result<(), TunError> {
    // A process group of its own: Ctrl-C is meant for us, and must not cut a clean-up short.
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .process_group(0)
        .output()
        .map_err(TunError::NoIp)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(TunError::Ip {
        arguments: arguments.to_owned(),
        said: said.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

/// Whether the kernel has a route to exactly this network, in the namespace of the calling thread, beside which it takes no
/// other that is added without a metric. `false` if it does not say.
pub(super) fn route_exists(network: InterfaceAddress) -> bool {
    let is_v6 = network.ip().is_ipv6();
    let family = if is_v6 { "-6" } else { "-4" };
    let output = Command::new("ip")
        .args([family, "route", "show", "exact", &network.to_string()])
        .stdin(Stdio::null())
        .output();
    output.is_ok_and(|output| has_common_metric(&String::from_utf8_lossy(&output.stdout), is_v6))
}

/// Whether one of the routes that `ip` lists has the metric of a route that is added without one: routes to one network that
/// differ in it stand beside each other, and the least is taken.
fn has_common_metric(routes: &str, is_v6: bool) -> bool {
    // IPv6 has one of its own (`IP6_RT_PRIO_USER`); that of IPv4 is 0, which is not listed.
    let common = is_v6.then_some("1024");
    // The lines of one route's next hops are indented.
    let mut routes = routes.lines().filter(|line| !line.starts_with([' ', '\t']));
    routes.any(|route| {
        let mut words = route
            .split_whitespace()
            .skip_while(|word| *word != "metric");
        !route.is_empty() && words.nth(1) == common
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_of_another_metric_stands_beside_ours() {
        let dhcp = "default via 192.0.2.1 dev eth0 proto dhcp src 192.0.2.7 metric 100 \n";
        assert!(!has_common_metric(dhcp, false));
        assert!(!has_common_metric("", false));
        let by_hand = "default via 192.0.2.1 dev eth0 \n";
        assert!(has_common_metric(by_hand, false));
        assert!(has_common_metric(&format!("{dhcp}{by_hand}"), false));
        let hops = "default metric 100 \n\tnexthop via 192.0.2.1 dev eth0 weight 1 \n";
        assert!(!has_common_metric(hops, false));
        let v6 =
            |metric| format!("default via fe80::1 dev eth0 proto ra metric {metric} pref medium\n");
        assert!(has_common_metric(&v6(1024), true));
        assert!(!has_common_metric(&v6(100), true));
    }
}
