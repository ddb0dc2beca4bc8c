//! Counts and small known cases of every family.

use super::{Family, TABLE};

fn edges(name: &str, tasks: u32) -> Vec<Vec<u32>> {
    let graph = Family::by_name(name).unwrap().graph(tasks);
    graph.iter().map(|(_, producers)| producers.to_vec()).collect()
}

fn counts(name: &str, tasks: u32) -> (u32, u64) {
    let graph = Family::by_name(name).unwrap().graph(tasks);
    (graph.tasks(), graph.edges())
}

#[test]
fn names_are_unique_and_found() {
    for (index, (name, summary, _)) in TABLE.iter().enumerate() {
        assert_eq!(Family::by_name(name), Some(Family(index)), "{name}");
        assert!(!summary.is_empty());
    }
    assert_eq!((Family::programs().count(), Family::task_bench().count()), (10, 11));
    assert!("diamond".parse::<Family>().unwrap_err().contains("choose one of chain, "));
}

#[test]
fn every_graph_has_about_the_tasks_asked_for_and_no_edge_twice() {
    for family in Family::all() {
        for asked in [1, 2, 65, 1_000, 10_000] {
            let graph = family.graph(asked);
            let (least, most) =
                if asked < 1_000 { (1, 164) } else { (asked * 3 / 4, asked * 5 / 4) };
            assert!((least..=most).contains(&graph.tasks()), "{family} {asked}: {}", graph.tasks());
            for (task, producers) in graph.iter() {
                let mut sorted = producers.to_vec();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(sorted.len(), producers.len(), "{family} {asked}: task {task}");
            }
        }
    }
}

#[test]
fn plain_shapes() {
    assert_eq!(edges("chain", 3), [vec![], vec![0], vec![1]]);
    assert_eq!(edges("independent", 2), vec![Vec::<u32>::new(); 2]);
    assert_eq!(edges("tree", 5), [vec![], vec![0], vec![0], vec![1], vec![1]]);
    assert_eq!(edges("wavefront", 4), [vec![], vec![0], vec![0], vec![2, 1]]);
    assert_eq!(edges("fft", 4), [vec![], vec![], vec![0, 1], vec![1, 0]]);
    assert_eq!(counts("fork_join", 66), (66, 128));
    assert_eq!(counts("fork_join", 130), (66, 128));
    assert_eq!(counts("wavefront", 10_000), (10_000, 19_800));
    // 4096 points are the most whose 12 stages fit: 24 rows of them.
    assert_eq!(counts("fft", 100_000), (98_304, 2 * 4_096 * 23));
}

#[test]
fn random_producers_stand_in_the_window() {
    let graph = Family::by_name("random").unwrap().graph(5_000);
    for (task, producers) in graph.iter() {
        assert_eq!(producers.len(), 4.min(task as usize));
        assert!(producers.iter().all(|producer| task - producer <= 1_000));
    }
    let farthest = graph.iter().flat_map(|(task, of)| of.iter().map(move |p| task - p)).max();
    assert!(farthest > Some(990));
}

#[test]
fn cholesky_of_three_blocks() {
    let expected: [&[u32]; 10] =
        [&[], &[0], &[0], &[1], &[2, 1], &[2], &[3], &[6, 4], &[7, 5], &[8]];
    assert_eq!(edges("cholesky", 10), expected);
    // n blocks: n factors, n (n - 1) / 2 solves and symmetric updates, n (n - 1) (n - 2) / 6 products.
    assert_eq!(counts("cholesky", 219).0, 165);
    assert_eq!(counts("cholesky", 220).0, 220);
}

#[test]
fn a_transformer_has_layers() {
    assert_eq!(counts("transformer", 1).0, 164);
    let layer = |count: u32| counts("transformer", 164 * count);
    assert_eq!(layer(2).0, 328);
    assert_eq!(layer(3).1 - layer(2).1, layer(4).1 - layer(3).1);
}

#[test]
fn patterns_of_task_bench() {
    let second_row = |name: &str, point: usize| edges(name, 128)[64 + point].clone();
    assert!(second_row("tb_trivial", 5).is_empty());
    assert_eq!(second_row("tb_no_comm", 5), [5]);
    assert_eq!(second_row("tb_stencil_1d", 0), [0, 1]);
    assert_eq!(second_row("tb_stencil_1d", 63), [62, 63]);
    assert_eq!(second_row("tb_stencil_1d_periodic", 0), [63, 0, 1]);
    assert_eq!(second_row("tb_fft", 1), [0, 1, 2]);
    assert_eq!(edges("tb_fft", 192)[128 + 5], [64 + 3, 64 + 5, 64 + 7]);
    assert_eq!(second_row("tb_nearest", 10), [8, 9, 10, 11, 12]);
    assert_eq!(second_row("tb_nearest", 0), [0, 1, 2]);
    assert_eq!(second_row("tb_spread", 0), [0, 12 + 1, 25 + 1, 38 + 1, 51 + 1]);
    assert_eq!(second_row("tb_all_to_all", 7).len(), 64);
    assert!(second_row("tb_random_nearest", 10).contains(&10));
    let (tasks, with_own) = counts("tb_random_nearest", 64_000);
    let mean = with_own as f64 / f64::from(tasks) - 1.0;
    assert!((0.6..1.4).contains(&mean), "a quarter of four neighbours: {mean}");
}

#[test]
fn rows_of_trees_and_sweeps_grow() {
    assert_eq!(edges("tb_tree", 7), [vec![], vec![0], vec![0], vec![1], vec![1], vec![2], vec![2]]);
    assert_eq!(counts("tb_tree", 127 + 64).0, 127 + 64);
    assert_eq!(edges("tb_tree", 127 + 64)[127 + 63], [63 + 31]);
    // A row of one point, then two, and so on to 64; the last rows shrink again.
    let grid = edges("tb_dom", 64 * 64);
    assert_eq!(grid[..6], [vec![], vec![0], vec![0], vec![1], vec![1, 2], vec![2]]);
    assert_eq!(grid.last().unwrap().len(), 2);
    assert_eq!(counts("tb_dom", 64 * 64), (64 * 64, 2 * 64 * 63));
}

/// Of any width: each point needs points of the row above it, itself among them, and of the standard width it is the family itself.
#[test]
fn patterns_have_rows_of_any_width() {
    let of = |name, width| super::pattern(name, std::num::NonZeroU32::new(width).unwrap(), 720);
    for name in ["tb_stencil_1d", "tb_fft", "tb_nearest", "tb_random_nearest"] {
        let graph = of(name, 72).unwrap();
        assert_eq!(graph.tasks(), 720, "{name}");
        for (task, producers) in graph.iter() {
            let above = task.checked_sub(72);
            assert_eq!(above.is_none(), producers.is_empty(), "{name} {task}");
            assert!(
                producers.iter().all(|producer| Some(producer / 72) == above.map(|at| at / 72))
            );
            assert!(above.is_none_or(|above| producers.contains(&above)), "{name} {task}");
        }
        let standard = Family::by_name(name).unwrap().graph(720);
        assert_eq!(of(name, super::width::WIDTH).unwrap(), standard, "{name}");
    }
    assert_eq!(of("tb_tree", 72), None);
}
