//! The points that a paper's figures make, and the commands that make them.

use super::*;
use crate::PAPERS;
use crate::family::FamilyLine;
use crate::scenario::line_command;
use fulmar_sim::scenario::Document;

#[test]
fn points_that_are_mixed_are_those_of_their_places() {
    for paper in PAPERS {
        let made = Reproduction::new(paper, Some(1)).expect("the tables are valid");
        let points = &made.experiment.points;
        let mut places = made.places.iter();
        for family in &made.families {
            for line in family.lines {
                let own = points_of(family, line);
                for (own, place) in own.iter().zip(places.by_ref()) {
                    assert_eq!(own.parameters, points[*place].parameters, "{}", family.id);
                }
            }
        }
        assert_eq!(places.next(), None);
        // The 20 MB of a family do not lie together.
        let costs: Vec<u64> = (0..points.len()).map(|p| made.experiment.cost(p)).collect();
        let quarter: u64 = costs[..costs.len() / 4].iter().sum();
        let share = quarter as f64 / costs.iter().sum::<u64>() as f64;
        assert!((share - 0.25).abs() < 0.05, "{}: {share}", paper.name);
    }
}

#[test]
fn drawing_the_strengths_by_strength_too_costs_no_run() {
    let made = Reproduction::new(&crate::MULTI_MODE, Some(1)).expect("the tables are valid");
    let mut places = made.places.iter().copied();
    let mut of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for family in &made.families {
        let count = family.lines.len() * family.x.ids().len();
        of.insert(family.id, places.by_ref().take(count).collect());
    }
    for (by_rate, by_strength) in [
        ("strength-by-rate", "rate-by-strength"),
        ("strength-10ms", "rate-by-strength-10ms"),
        ("strength-octet", "rate-by-strength-octet"),
        ("strength-20mb", "rate-by-strength-20mb"),
    ] {
        let shared = |place: &usize| of[by_rate].contains(place);
        assert!(of[by_strength].iter().all(shared), "{by_strength}");
    }
}

#[test]
fn each_command_on_a_page_makes_the_runs_it_stands_under() {
    for paper in PAPERS {
        for (family, line) in paper
            .families
            .iter()
            .flat_map(|family| family.lines.iter().map(move |line| (family, line)))
        {
            for runs in [None, Some(3)] {
                let ours = document(family, line, runs).expect("the tables are valid");
                let ours = points(&ours).expect("they are");
                let command = line_command(family, line, ours[0].plan.run.runs);
                let told = told(&command, family.scenario.1);
                assert_eq!(told.len(), ours.len(), "{command}");
                for (told, ours) in told.iter().zip(&ours) {
                    assert_eq!(told.plan, ours.plan, "{command}");
                    assert_eq!(told.varied, ours.varied, "{command}");
                }
                let numbers =
                    command.matches("runs ").count() + command.matches("run.runs").count();
                assert_eq!(numbers, 1, "{command}");
            }
        }
    }
}

/// The points of a command, as `fulmar sim` takes its arguments.
fn told(command: &str, scenario: &str) -> Vec<SweepPoint> {
    let (head, sets) = command.split_once(" --set ").expect("a sweep at least");
    let words: Vec<&str> = head.split(' ').collect();
    assert_eq!(words[..2], ["fulmar", "sim"]);
    assert_eq!(words[3], "--runs");
    let mut document = Document::parse(words[2], scenario).expect("it is valid");
    for set in sets.split(" --set ") {
        let set = set
            .strip_prefix('\'')
            .and_then(|set| set.strip_suffix('\''));
        document.set(set.expect("in quotes")).expect("it is valid");
    }
    let runs = format!("run.runs={}", words[4]);
    document.set(&runs).expect("it is valid");
    points(&document).expect("they are valid")
}

#[test]
fn a_figure_of_computed_curves_alone_makes_the_runs_it_shows_and_no_others() {
    let made = |name| {
        let made = Reproduction::figure(&crate::FSO, name, None);
        made.expect("it is one").expect("the tables are valid")
    };
    let points = |name| made(name).experiment.points.len();
    // Three layers, three lengths, three rates.
    assert_eq!(points("simulated-fasolt"), 27);
    assert_eq!(points("fig-4-length"), 0);
    let outcome = made("fig-4-length").outcome(Vec::new(), "");
    let outcome = outcome.expect("it can be drawn");
    let names: Vec<&str> = outcome
        .files
        .iter()
        .map(|file| file.name.as_str())
        .collect();
    assert_eq!(names, ["fig-4-length.csv", "fig-4-length.svg"]);
    assert_eq!((outcome.figures, outcome.claims.len()), (1, 0));
    let csv = &outcome.files[0].text;
    assert!(csv.starts_with("line,packet_length"), "{csv}");
    assert!(csv.contains("\r\n1e-7,70,"), "{csv}");
    // Tables of runs are no figures.
    assert!(Reproduction::figure(&crate::FSO, "table-1", None).is_none());
}

#[test]
fn fewer_runs_than_a_figure_has_are_told() {
    assert_eq!(FewRuns::of(None, &[25, 100]), None);
    assert_eq!(FewRuns::of(Some(100), &[25, 100]), None);
    let few = |asked, own: &[usize]| {
        FewRuns::of(Some(asked), own)
            .expect("fewer than some")
            .to_string()
    };
    assert_eq!(few(99, &[100, 25]), "99 runs a point instead of 25 to 100");
    assert_eq!(few(1, &[25, 25]), "1 run a point instead of 25");
    assert_eq!(FewRuns::of(Some(1), &[]), None);
}

fn points_of(family: &Family, line: &FamilyLine) -> Vec<SweepPoint> {
    let document = document(family, line, Some(1)).expect("it is valid");
    let points = points(&document).expect("it is valid");
    assert_eq!(points.len(), family.x.ids().len());
    points
}
