//! Pipelines: order and time of tokens, several producers and consumers, deadlocks.

use std::fmt::Write;

use pto_workload::Workload;
use pto_workload::clock::{Bindings, CHANNEL_LATENCY, Report, RunError, run};

/// A kernel that costs as much as its scalar says, and adds its token to a sum.
const WORK: &str = "kernel work(sum: inout i64[1, 1], token: i64, cost: i64) {
    %0 = load sum : i64[1, 1]
    %1 = scalar token : i64
    %2 = add %0, %1 by one : i64[1, 1]
    store sum, %2
    %3 = scalar cost : i64
    add_cycles %3
  }";

/// What the kernel costs without its scalar: a load, a sum, a store.
const OWN: u64 = 3;

fn pipeline(channels: &str, processes: &str) -> String {
    format!(
        "workload pipes {{\n  tensor SUMS : i64[8]\n  {channels}\n  {WORK}\n  do pipeline {{\n{processes}\n  }}\n}}"
    )
}

fn run_text(text: &str, latency: Option<u64>) -> (Result<Report, RunError>, Vec<i64>) {
    let workload = Workload::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(Workload::parse(&workload.to_string()).unwrap(), workload);
    let checked = workload.check().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut sums = vec![0i64; 8];
    let result = {
        let mut bindings = Bindings::new().dense(&checked, "SUMS", &mut sums).unwrap();
        if let Some(latency) = latency {
            bindings = bindings.symbol(CHANNEL_LATENCY, latency);
        }
        run(&checked, &bindings)
    };
    (result, sums)
}

/// One process sends ten tokens with these costs, another one takes them with those.
fn two_stages(depth: u64, sender: &str, receiver: &str) -> String {
    pipeline(
        &format!("channel c depth {depth}"),
        &format!(
            "process first produces c {{ each t in dense 10 {{ send c work[t](sum = SUMS[0], token = 1, cost = {sender}) }} }}
             process second consumes c {{ consume c as t {{ work[t](sum = SUMS[1], token = t, cost = {receiver}) }} }}"
        ),
    )
}

#[test]
fn known_answers_of_a_program_with_two_stages() {
    // Found by search among simple costs: the facts give the answers and not the program.
    let cost = |condition: &str, then: u64, other: u64| {
        format!("({condition} ? {} : {})", then - OWN, other - OWN)
    };
    for (depth, expected) in [(1, 131_104), (2, 122_912), (0, 139_296)] {
        let text = two_stages(depth, &cost("t < 4", 32, 16_384), &cost("t < 1", 16_384, 8192));
        let (report, sums) = run_text(&text, None);
        let report = report.unwrap();
        assert_eq!((report.total_cycles, report.tasks), (expected, 20), "depth {depth}");
        assert_eq!(sums[..2], [10, 45], "every token was taken once");
    }
}

#[test]
fn latency_is_a_symbol() {
    let text = two_stages(4, "97", "47");
    let total = |latency| run_text(&text, latency).0.unwrap().total_cycles;
    assert_eq!([total(None), total(Some(0)), total(Some(50))], [1050, 1050, 1100]);
}

#[test]
fn no_token_is_lost_with_two_producers_and_two_consumers() {
    for depth in [0, 1, 2, 7] {
        for (a, b, c, d) in [(1, 1, 1, 1), (100, 1, 50, 50), (1, 100, 7, 300), (13, 29, 5, 3)] {
            let text = pipeline(
                &format!("channel c depth {depth}"),
                &format!(
                    "process a produces c {{ each t in dense 20 {{ send c work[t](sum = SUMS[0], token = t, cost = {a}) }} }}
                     process b produces c {{ each t in dense 13 {{ send c work[t + 100](sum = SUMS[0], token = t, cost = {b}) }} }}
                     process x consumes c {{ consume c as t {{ work[t](sum = SUMS[1], token = t, cost = {c}) }} }}
                     process y consumes c {{ consume c as t {{ work[t](sum = SUMS[2], token = t, cost = {d}) }} }}"
                ),
            );
            let (report, sums) = run_text(&text, Some(3));
            assert_eq!(report.as_ref().unwrap().tasks, 66);
            let sent: i64 = (0..20).sum::<i64>() + (0..13).map(|t| t + 100).sum::<i64>();
            assert_eq!(sums[1] + sums[2], sent, "depth {depth}");
            assert_eq!(run_text(&text, Some(3)).0, report, "the same every time");
        }
    }
}

#[test]
fn a_long_chain_of_processes() {
    let (mut channels, mut processes) = (String::new(), String::new());
    writeln!(processes, "process p0 produces c0 {{ each t in dense 50 {{ send c0 work[t](sum = SUMS[0], token = 0, cost = 7) }} }}").unwrap();
    for stage in 0..12 {
        writeln!(channels, "channel c{stage} depth {}", stage % 3).unwrap();
        let next = stage + 1;
        let body = format!("work[t](sum = SUMS[1], token = 0, cost = {})", 7 + stage);
        if stage == 11 {
            writeln!(
                processes,
                "process p{next} consumes c{stage} {{ consume c{stage} as t {{ {body} }} }}"
            )
            .unwrap();
        } else {
            writeln!(processes, "process p{next} consumes c{stage} produces c{next} {{ consume c{stage} as t {{ send c{next} {body} }} }}").unwrap();
        }
    }
    let (report, _) = run_text(&pipeline(&channels, &processes), None);
    assert_eq!(report.unwrap().tasks, 50 * 13);
}

#[test]
fn a_deadlock_says_who_waits_for_whom() {
    // The first fills one channel before the other; the second takes them the other way round.
    let text = pipeline(
        "channel c depth 1\n  channel d depth 1",
        "process first produces c, d {
           sequential {
             each t in dense 3 { send c work[t](sum = SUMS[0], token = 1, cost = 1) }
             each t in dense 3 { send d work[t](sum = SUMS[0], token = 1, cost = 1) }
           }
         }
         process second consumes c, d {
           sequential {
             consume d as t { work[t](sum = SUMS[1], token = 1, cost = 1) }
             consume c as t { work[t](sum = SUMS[1], token = 1, cost = 1) }
           }
         }",
    );
    let error = run_text(&text, None).0.unwrap_err();
    assert_eq!(
        error.to_string(),
        "The pipeline is in a deadlock: first waits until second takes a token of c; second waits for a token of d from first."
    );
}

#[test]
fn a_process_without_channels_runs_beside_the_others() {
    let text = pipeline(
        "",
        "process alone { each t in dense 4 { work[t](sum = SUMS[3], token = t, cost = 10) } }",
    );
    let (report, sums) = run_text(&text, None);
    assert_eq!((report.unwrap().total_cycles, sums[3]), (4 * (10 + OWN), 6));
}
