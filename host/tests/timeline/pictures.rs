//! Pictures and texts of a trace whose content is known.

use pto_host::timeline::{Analysis, gantt, html, report, svg};

use crate::hand::three_tasks;

#[test]
fn the_report_says_every_number() {
    let trace = three_tasks();
    let text = report::text(&trace, &Analysis::of(&trace).expect("analysed"));
    for words in [
        "makespan      250 ns",
        "graph         210 ns",
        "parts         3\n",
        "critical path 140 ns, 66.7 %: 2 tasks",
        "aiv work 70 ns, 33.3 %: 140 ns on 2 cores",
        "the graph takes 1.50 times the largest of them",
        "at once for 30 ns, 14.3 % of the graph",
        "2 tasks: builder 0 ns, seeing ends 10 ns, dispatching 30 ns, starting 20 ns, running 140 ns",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(!text.contains("INCOMPLETE"));
    let mut cut = trace.clone();
    cut.lanes[0].dropped = 7;
    cut.tasks[1].at.finished = None;
    let text = report::text(&cut, &Analysis::of(&cut).expect("analysed"));
    assert!(text.contains("7 events dropped") && text.contains("1 task without a start"), "{text}");
}

#[test]
fn a_chart_is_as_dark_as_its_cores_are_busy() {
    let chart = gantt::chart(&three_tasks(), 21);
    let lines: Vec<_> = chart.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].contains('0') && lines[0].ends_with("210 ns"));
    assert_eq!(lines[1], "aic 0  ················████·  19.0 %");
    assert_eq!(lines[2], "aiv 0  ··██████████·········  47.6 %");
    assert_eq!(lines[3], "aiv 1  ··████···············  19.0 %");
}

#[test]
fn many_cores_share_lines() {
    let mut trace = three_tasks();
    trace.cores = vec![pto_abi::CoreKind::AIV; 48];
    let chart = gantt::chart(&trace, 21);
    assert_eq!(chart.lines().count(), 1 + 12);
    assert!(chart.contains("aiv 44-47"), "{chart}");
}

#[test]
fn a_picture_has_lanes_tasks_and_the_chain() {
    let trace = three_tasks();
    let picture = svg::picture(&trace, &Analysis::of(&trace).expect("analysed"));
    assert_eq!(picture.matches("<title>").count(), 3, "one rectangle a task");
    assert!(picture.contains(">aiv 1</text>") && picture.contains("stroke=\"#d00\""));
    assert!(picture.contains("by &quot;hand&quot;") && !picture.contains("NaN"));
}

#[test]
fn many_facts_take_several_lines_of_a_picture() {
    let mut trace = three_tasks();
    let height = |picture: &str| {
        let at = picture.split("height=\"").nth(1).expect("it has one");
        at.split('"').next().and_then(|text| text.parse::<f64>().ok()).expect("a number")
    };
    let one = svg::picture(&trace, &Analysis::of(&trace).expect("analysed"));
    for fact in 0..20 {
        trace.run.insert(format!("fact {fact:02}"), "a few words that say it".to_owned());
    }
    let many = svg::picture(&trace, &Analysis::of(&trace).expect("analysed"));
    let (header, rest) = many.split_once("<g ").expect("the lanes");
    assert_eq!(header.matches("<text").count(), 5);
    assert_eq!(header.matches("fact ").count(), 20);
    assert!(header.lines().all(|line| line.len() < 250), "{header}");
    assert!(rest.starts_with("transform=\"translate(0 52)\""), "{}", &rest[..40]);
    assert!((height(&many) - height(&one) - 52.0).abs() < 1e-9);
}

#[test]
fn the_page_is_one_file_and_loads_nothing() {
    let mut trace = three_tasks();
    trace.kernels.insert(0, "</script><script>alert(1)</script>".to_owned());
    trace.run.insert("example".to_owned(), "<b>@DATA@</b>".to_owned());
    let page = html::page(&trace, &Analysis::of(&trace).expect("analysed"));
    assert_eq!(page.matches("<script").count(), 2, "no text becomes code");
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("<b>"));
    assert!(page.contains("&lt;b&gt;@DATA@&lt;/b&gt;: timeline"), "a title is text");
    assert!(page.contains("default-src 'none'") && !page.contains("@SCRIPT@"));
}
