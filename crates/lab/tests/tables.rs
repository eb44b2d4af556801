//! Results as tables: nothing of a record is missing, and the numbers are those of the records.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use fulmar_lab::measure::MEASURES;
use fulmar_lab::{PointTable, RunTable, Study};
use fulmar_sim::ExperimentProgress;
use fulmar_sim::scenario::{Document, NAMED_BY};
use std::collections::BTreeSet;
use std::path::Path;

/// A scenario with every group of measures: several flows, goals, and hops with link layers.
pub(crate) const EVERYTHING: &str = "[run]\nruns = 3\nduration = '5s'\n\
    [[hop]]\nrate = '2mbit'\nloss = '1%'\nlink = 'll-arq'\n\
    [[flow]]\ntransport = 'aerotp'\ntraffic = 'bulk'\nbytes = '50kB'\n\
    [[flow]]\ntransport = 'aerotp'\ntraffic = 'bulk'\nbytes = '50kB'\n\
    [sweep]\n'hop.loss' = ['0%', '5%', '20%']\n";

pub(crate) fn study(text: &str) -> Study {
    let mut document = Document::parse("everything.toml", text).expect("TOML");
    document.named_by = NAMED_BY;
    Study::read(Path::new("everything.toml"), &document).expect("a sound scenario")
}

#[test]
fn each_number_of_a_record_has_a_column_and_each_column_a_number() {
    let study = study(EVERYTHING);
    let results = study.experiment.run(1, &ExperimentProgress::default());
    let run = &results.expect("threads")[0].runs[0];
    let numbers = run.numbers().into_iter().map(|(name, _)| name);
    // A share of each flow has its number as its name; the index stands for them.
    let of_one_flow = |name: &String| name.starts_with("shares.") && name != "shares.jain";
    let told: BTreeSet<String> = numbers.filter(|name| !of_one_flow(name)).collect();
    let columns = MEASURES.iter().map(|measure| measure.name.to_owned());
    assert_eq!(told, columns.collect());
}

#[test]
fn a_table_of_points_has_the_means_and_intervals_of_the_records() {
    let study = study(EVERYTHING);
    let results = study.experiment.run(1, &ExperimentProgress::default());
    let results = results.expect("threads");
    let table = RunTable::of(study.points());
    let mut points = PointTable::of(&table.schema());
    for result in &results {
        let runs = table
            .batch(study.points(), &result.runs)
            .expect("of this sweep");
        // A point's runs may come in pieces.
        points.push(&runs.slice(0, 1)).expect("runs");
        points.push(&runs.slice(1, 2)).expect("runs");
    }
    let rows = points.finish().expect("points");
    assert_eq!(rows.num_rows(), 3);
    let loss = rows["hop.loss"].as_primitive::<Float64Type>();
    assert_eq!(loss.values(), &[0.0, 0.05, 0.2]);
    assert_eq!(rows["n"].as_primitive::<UInt64Type>().values(), &[3, 3, 3]);
    let number = |column: &str, row| {
        let column = rows[column].as_primitive_opt::<Float64Type>()?;
        column.iter().nth(row).flatten()
    };
    for (row, result) in results.iter().enumerate() {
        for measure in &MEASURES {
            let summary = result.aggregate.summary(measure.name).expect("it is there");
            assert_eq!(number(measure.name, row), summary.mean, "{}", measure.name);
            let half = format!("{}_ci95", measure.name);
            assert_eq!(number(&half, row), summary.ci95, "{half}");
        }
    }
}

#[test]
fn columns_name_their_unit() {
    let table = RunTable::of(study(EVERYTHING).points());
    let schema = table.schema();
    let unit =
        |name: &str| schema.field_with_name(name).expect("a column").metadata()["unit"].clone();
    assert_eq!(unit("goodput_bps"), "bit/s");
    assert_eq!(unit("delay_p99_s"), "s");
    assert_eq!(unit("hop.loss"), "share");
}

#[test]
fn a_graph_has_columns_for_each_flow_and_each_way_of_a_hop() {
    let study = study(
        "[run]\nruns = 2\nduration = '5s'\n\
         [[hop]]\nname = 'up'\nfrom = 'air'\nto = 'relay'\nrate = '2mbit'\n\
         [[hop]]\nfrom = 'relay'\nto = 'ground'\nrate = '2mbit'\n\
         [[flow]]\nfrom = 'air'\nto = 'ground'\ntransport = 'aerotp'\nbytes = '50kB'\n",
    );
    let results = study.experiment.run(1, &ExperimentProgress::default());
    let runs = &results.expect("threads")[0].runs;
    let table = RunTable::of(study.points());
    let batch = table.batch(study.points(), runs).expect("of this sweep");
    let counts = |column: &str| batch[column].as_primitive::<UInt64Type>().value(0);
    assert_eq!(counts("by_flow.0.delivered_bytes"), 50_000);
    assert!(counts("by_way.up/forward.packets") > 33);
    assert!(counts("by_way.hop-1/reverse.packets") > 0);
    // Each number of the record has a column.
    let schema = table.schema();
    let missing = runs[0].numbers().into_iter().map(|(name, _)| name);
    let missing: Vec<String> = missing
        .filter(|name| name.starts_with("by_") && schema.field_with_name(name).is_err())
        .collect();
    assert_eq!(missing, [""; 0]);
    let mut points = PointTable::of(&schema);
    points.push(&batch).expect("runs");
    let points = points.finish().expect("points");
    let mean = points["by_way.up/forward.bytes"].as_primitive::<Float64Type>();
    assert!(mean.value(0) > 50_000.0);
    assert!(
        points
            .schema()
            .field_with_name("by_flow.0.goodput_bps_ci95")
            .is_ok()
    );
}

#[test]
fn a_sweep_over_names_of_hops_has_columns_for_as_many_as_the_largest_graph_has() {
    let names: Vec<String> = (0..300).map(|name| format!("'up{name}'")).collect();
    let study = study(&format!(
        "[run]\nruns = 1\n[[hop]]\nname = 'up'\nfrom = 'air'\nto = 'ground'\nrate = '2mbit'\n\
         [[flow]]\nfrom = 'air'\nto = 'ground'\ntransport = 'udp'\nbytes = '50kB'\n[sweep]\n'hop.0.name' = [{}]\n",
        names.join(", ")
    ));
    assert_eq!(study.points().len(), 300);
    let schema = RunTable::of(study.points()).schema();
    let ways = schema.fields().iter();
    let ways = ways
        .filter(|field| field.name().starts_with("by_way.") && field.name().ends_with(".packets"));
    assert_eq!(ways.count(), 500);
    assert!(schema.field_with_name("by_flow.0.goodput_bps").is_ok());
}
