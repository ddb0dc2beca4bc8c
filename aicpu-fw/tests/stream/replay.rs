//! Records: what is replayed is ordered as what is submitted, on random programs; and what a replay refuses.

use std::collections::BTreeSet;

use pto_abi::{CoreKind, Fault, FuncId, GmAddr, TaskId};
use pto_graph::{
    Arg, Bindings, Bound, Comparison, DependencyMode, ElementType, GraphBuilder, Predicate,
    Priority, Recording, StreamBuilder, TensorTask, TensorView,
};

use crate::oracle::all_reachable;
use crate::random::{ELEMENTS, view};
use crate::rig::{CORES, Made, NO_KERNEL, TestStream, reads, with_stream};
use crate::split_mix::SplitMix64;

fn whole(number: u64) -> TensorView<'static> {
    TensorView::dense(GmAddr(0x10_0000 * (1 + number)), ElementType::F32, &[ELEMENTS])
}

/// A part of a tensor, as `random::view` cuts it out of one, or the whole of it.
fn part<'s>(random: &mut SplitMix64, of: &TensorView<'s>) -> TensorView<'s> {
    if random.below(3) == 0 {
        return *of;
    }
    loop {
        // Strided parts of the tensor that `of` is, on the same elements.
        let cut = view(random, GmAddr(0));
        if cut.element() == of.element() && cut.shape().len() == 1 {
            let (start, step) = (cut.offset_bytes() / 4, cut.strides()[0].max(1));
            let start = u32::try_from(start).unwrap();
            let part = of.slice(0, start, ELEMENTS - start);
            let step = u32::try_from(step).unwrap();
            return part.step(0, step).slice(
                0,
                0,
                cut.shape()[0].min((ELEMENTS - start).div_ceil(step)),
            );
        }
    }
}

/// A piece of a program on four tensors: tasks, a scope with a temporary, an explicit one, and words that change.
fn piece<G: StreamBuilder>(
    stream: &mut G,
    seed: u64,
    tensors: &[TensorView<'_>; 4],
    salt: Arg<'_>,
) -> Result<(), Fault> {
    let random = &mut SplitMix64(seed);
    for part_of_it in 0..1 + random.below(3) {
        let mode = match random.below(6) {
            0 => DependencyMode::EXPLICIT,
            1 => DependencyMode::MANUAL,
            _ => DependencyMode::DERIVED,
        };
        stream.scope(mode, |scope| {
            let temporary = scope.tensor(ElementType::F32, &[ELEMENTS])?;
            let mut last = None;
            for _ in 0..1 + random.below(6) {
                let mut views = Vec::new();
                for _ in 0..1 + random.below(3) {
                    let number = random.below(5) as usize;
                    let tensor = tensors.get(number).unwrap_or(&temporary).detach();
                    views.push((part(random, &tensor), random.below(3)));
                }
                let mut args = vec![Arg::Scalar(part_of_it.into()), salt];
                let mut written = BTreeSet::new();
                for (view, kind) in &views {
                    // Outputs of one task must not overlap.
                    let writes = *kind == 0 && written.insert(view.base().0);
                    args.push(if writes { Arg::InOut(view) } else { Arg::In(view) });
                }
                let after: Vec<_> = last.into_iter().collect();
                let after = if mode != DependencyMode::DERIVED || random.below(4) == 0 {
                    &after[..]
                } else {
                    &[]
                };
                let number = random.below(5) as usize;
                let on = tensors.get(number).unwrap_or(&temporary);
                last = Some(submit_shaped(&mut **scope, random, (&args, after), on)?);
            }
            Ok::<(), Fault>(())
        })?;
    }
    Ok(())
}

/// A task with these arguments that waits for these tasks: every other one has a shape, and some a predicate on an element of a tensor.
fn submit_shaped<G: StreamBuilder>(
    stream: &mut G,
    random: &mut SplitMix64,
    (args, after): (&[Arg<'_>], &[TaskId]),
    on: &TensorView<'_>,
) -> Result<TaskId, Fault> {
    let comparison = Comparison::ALL[random.below(6) as usize];
    let predicate = Predicate::new(on, &[random.below(ELEMENTS)], comparison, random.word());
    let (kind, vectors): (_, &[FuncId]) = match random.below(4) {
        0 => (CoreKind::AIV, &[FuncId(5)]),
        1 => (CoreKind::AIC, &[FuncId(6), FuncId(7)]),
        _ => (CoreKind::AIV, &[]),
    };
    let mut task = TensorTask::new(FuncId(3), kind, args).after(after);
    if random.below(2) == 0 {
        task = task.mix(vectors).blocks(1 + random.below(CORES / 2));
        task = task.priority(Priority::ALL[random.below(4) as usize]);
    }
    if random.below(5) == 0 {
        task = task.sync_start();
    }
    if random.below(4) == 0 {
        task = task.when(&predicate);
    }
    stream.submit_tensors(&task)
}

/// Pieces in turn, on the tensors in turn, with single tasks between them.
fn program(seed: u64, replays: bool) -> Made {
    with_stream(|stream| {
        let random = &mut SplitMix64(seed);
        let all = [0, 1, 2, 3, 4].map(whole);
        let seeds = [random.word(), random.word()];
        let mut recordings = Vec::new();
        for seed in seeds {
            let shapes = [whole(0); 3];
            let record = |stream: &mut TestStream<'_>, bound: &Bound<'_>| {
                let [a, b, c] = [0, 1, 2].map(|index| bound.tensor(index));
                piece(stream, seed, &[a, b, c, all[4]], bound.scalar(0))
            };
            if replays {
                recordings.push(stream.record(&shapes, record).unwrap());
            }
        }
        for round in 0..8_u64 {
            let which = random.below(2) as usize;
            let turn = random.below(4) as usize;
            let tensors = [0, 1, 2].map(|index| all[(index + turn) % 4]);
            if replays {
                let bindings = Bindings { tensors: &tensors, scalars: &[round] };
                stream.replay(&recordings[which], &bindings).unwrap();
            } else {
                let [a, b, c] = tensors;
                let tensors = [a, b, c, all[4]];
                piece(stream, seeds[which], &tensors, Arg::Scalar(round)).unwrap();
            }
            let (tensor, kind) = (all[random.below(5) as usize], random.below(2));
            let view = part(random, &tensor);
            let arg = if kind == 0 { Arg::In(&view) } else { Arg::Out(&view) };
            stream.submit_tensors(&TensorTask::new(FuncId(1), CoreKind::AIV, &[arg])).unwrap();
        }
    })
}

#[test]
fn a_replay_is_ordered_as_a_submission() {
    let (mut edges, mut shaped) = (0, 0);
    for seed in 0..150 {
        let (submitted, replayed) = (program(seed, false), program(seed, true));
        assert_eq!(submitted.words, replayed.words, "seed {seed}");
        assert_eq!(submitted.shapes, replayed.shapes, "seed {seed}");
        shaped += submitted.shapes.iter().flatten().count();
        let tasks = submitted.words.len() as u64;
        let (one, other) = (&submitted.edges, &replayed.edges);
        assert!(all_reachable(tasks, other, one), "seed {seed}: an order is lost");
        assert!(all_reachable(tasks, one, other), "seed {seed}: an order too many");
        edges += other.len();
    }
    assert!(edges > 10_000 && shaped > 5_000, "{edges} edges, {shaped} shapes");
}

/// What a call of a closure on a stream with one recording of two tensors, the second one written, and one scalar returns.
fn refused(bind: impl FnOnce(&mut TestStream<'_>, &Recording) -> Fault) -> Fault {
    let mut found = None;
    with_stream(|stream| {
        let shapes = [whole(0), whole(0).slice(0, 0, 100).step(0, 2)];
        let recording = stream.record(&shapes, |stream, bound| {
            let (a, b) = (bound.tensor(0), bound.tensor(1));
            let args = [Arg::In(&a), Arg::Out(&b), bound.scalar(0)];
            stream.submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &args))?;
            Ok::<(), Fault>(())
        });
        found = Some(bind(stream, &recording.unwrap()));
    });
    found.unwrap()
}

#[test]
fn what_does_not_fit_is_refused() {
    let replay = |tensors: &[TensorView<'_>], scalars: &[u64]| {
        let bindings = Bindings { tensors, scalars };
        refused(|stream, recording| stream.replay(recording, &bindings).unwrap_err())
    };
    let (a, b) = (whole(1), whole(2).slice(0, 7, 100).step(0, 2));
    assert_eq!(replay(&[a], &[1]), Fault::STREAM_REPLAY_MISFIT, "too few tensors");
    assert_eq!(replay(&[a, b], &[]), Fault::STREAM_REPLAY_MISFIT, "too few scalars");
    assert_eq!(replay(&[a, whole(2)], &[1]), Fault::STREAM_REPLAY_MISFIT, "another shape");
    assert_eq!(
        replay(&[a, whole(2).slice(0, 7, 50)], &[1]),
        Fault::STREAM_REPLAY_MISFIT,
        "other strides"
    );
    let bytes = TensorView::dense(GmAddr(64), ElementType::U8, &[ELEMENTS]);
    assert_eq!(replay(&[bytes, b], &[1]), Fault::STREAM_REPLAY_MISFIT, "another element type");
    let over = whole(1).slice(0, 0, 100).step(0, 2);
    assert_eq!(replay(&[a, over], &[1]), Fault::STREAM_REPLAY_ALIAS);
    assert_eq!(replay(&[a, b.slice(0, 9, 900)], &[1]), Fault::STREAM_VIEW_RANGE);
    let other_run = |stream: &mut TestStream<'_>, recording: &Recording| {
        let other = Recording { run: recording.run + 1, ..*recording };
        stream.replay(&other, &Bindings::default()).unwrap_err()
    };
    assert_eq!(refused(other_run), Fault::STREAM_RECORDING_UNKNOWN);
    let elsewhere = |stream: &mut TestStream<'_>, recording: &Recording| {
        let other = Recording { at: recording.at + 1, ..*recording };
        stream.replay(&other, &Bindings::default()).unwrap_err()
    };
    assert_eq!(refused(elsewhere), Fault::STREAM_RECORDING_UNKNOWN);
}

/// What recording one task with a shape returns; `None`: nothing is wrong with it.
fn shape_refused(task: impl for<'t> Fn(TensorTask<'t>) -> TensorTask<'t>) -> Option<Fault> {
    let mut found = None;
    with_stream(|stream| {
        let recording = stream.record(&[whole(0)], |stream, bound| {
            let a = bound.tensor(0);
            let args = [Arg::InOut(&a)];
            stream.submit_tensors(&task(TensorTask::new(FuncId(3), CoreKind::AIC, &args)))?;
            Ok::<(), Fault>(())
        });
        found = recording.err();
        let _ = stream.end_recording();
    });
    found
}

#[test]
fn a_shape_that_the_device_has_no_cores_for_is_not_recorded() {
    assert_eq!(shape_refused(|task| task.blocks(0)), Some(Fault::STREAM_BLOCKS));
    assert_eq!(shape_refused(|task| task.blocks(1 << 24)), Some(Fault::STREAM_BLOCKS));
    assert_eq!(shape_refused(|task| task.blocks(CORES).sync_start()), None);
    let many = shape_refused(|task| task.blocks(CORES + 1).sync_start());
    assert_eq!(many, Some(Fault::STREAM_SYNC_BLOCKS));
    assert_eq!(shape_refused(|task| task.mix(&[FuncId(5); 3])), Some(Fault::STREAM_MIX));
    let missing = shape_refused(|task| task.mix(&[NO_KERNEL]));
    assert_eq!(missing, Some(Fault::BUILD_KERNEL_MISSING));
}

/// Records a task with a predicate on an element of its bound tensor, or of another one, and replays it on `tensor`.
fn predicate_replayed(
    stream: &mut TestStream<'_>,
    on: Option<&TensorView<'_>>,
    tensor: TensorView<'_>,
) -> Result<(), Fault> {
    let recording = stream.record(&[whole(0)], |stream, bound| {
        let a = bound.tensor(0);
        let predicate = Predicate::new(on.unwrap_or(&a), &[7], Comparison::LESS, 1);
        let args = [Arg::In(&a)];
        let task = TensorTask::new(FuncId(3), CoreKind::AIC, &args);
        stream.submit_tensors(&task.when(&predicate))?;
        Ok::<(), Fault>(())
    })?;
    stream.replay(&recording, &Bindings { tensors: &[tensor], scalars: &[] })
}

#[test]
fn an_element_that_no_scheduler_can_read_is_refused() {
    let on = |on: Option<TensorView<'_>>, address: u64| {
        let mut found = None;
        with_stream(|stream| {
            let tensor = TensorView::dense(GmAddr(address), ElementType::F32, &[ELEMENTS]);
            found = predicate_replayed(stream, on.as_ref(), tensor).err();
            let _ = stream.end_recording();
        });
        found
    };
    let foreign = TensorView::dense(GmAddr(0x10_0001), ElementType::F32, &[ELEMENTS]);
    assert_eq!(on(None, 0x10_0000), None);
    assert_eq!(on(None, 0x10_0002), Some(Fault::STREAM_PREDICATE), "when it is bound");
    assert_eq!(on(Some(foreign), 0x10_0000), Some(Fault::STREAM_PREDICATE), "when it is recorded");
    let short = whole(1).slice(0, 0, 7);
    assert_eq!(on(Some(short), 0x10_0000), Some(Fault::STREAM_VIEW_RANGE));
    let mut found = [None; 2];
    with_stream(|stream| {
        let outer = stream.scope(DependencyMode::DERIVED, |scope| {
            let outer = scope.tensor(ElementType::F32, &[8])?;
            found[0] = predicate_replayed(scope, Some(&outer), whole(1)).err();
            let _ = scope.end_recording();
            Ok::<_, Fault>(outer.detach())
        });
        found[1] = predicate_replayed(stream, Some(&outer.unwrap()), whole(1)).err();
        let _ = stream.end_recording();
    });
    let expected = [Fault::STREAM_REPLAY_MISFIT, Fault::STREAM_STALE_TENSOR];
    assert_eq!(found, expected.map(Some), "of an outer scope, and of one that is closed");
}

/// A kernel may be writing the element of a predicate while its task is submitted, recorded or replayed.
#[test]
fn the_element_of_a_predicate_is_not_read_by_the_builder() {
    let submits = || {
        with_stream(|stream| {
            let a = whole(0);
            let predicate = Predicate::new(&a, &[7], Comparison::LESS, 1);
            let task = TensorTask::new(FuncId(3), CoreKind::AIC, &[]);
            stream.submit_tensors(&task.when(&predicate)).unwrap();
        });
    };
    let replays = |on: Option<TensorView<'static>>| {
        with_stream(|stream| predicate_replayed(stream, on.as_ref(), whole(1)).unwrap());
    };
    let found = [reads(submits), reads(|| replays(None)), reads(|| replays(Some(whole(2))))];
    assert_eq!(
        found, [0; 3],
        "of a submission, of a bound tensor, of a tensor that is always the same"
    );
    let gets = || {
        with_stream(|stream| assert_eq!(stream.get(&whole(0), &[0]), Ok(0)));
    };
    assert_eq!(reads(gets), 1, "those that a program asks for are counted");
}

#[test]
fn what_a_recording_cannot_hold_is_refused() {
    let record = |body: &dyn Fn(&mut TestStream<'_>) -> Result<(), Fault>| {
        let mut found = None;
        with_stream(|stream| {
            found = Some(stream.record(&[whole(0)], |stream, _| body(stream)).unwrap_err());
            // The recording that failed is still open; nothing was added.
            let _ = stream.end_recording();
        });
        found.unwrap()
    };
    let open = Fault::STREAM_RECORDING_OPEN;
    assert_eq!(record(&|stream| stream.begin_recording(&[]).map(|_| ())), open);
    assert_eq!(record(&|stream| stream.get(&whole(0), &[0]).map(|_| ())), open);
    assert_eq!(record(&|stream| stream.set(&whole(0), &[0], 1)), open);
    let spec = pto_graph::TaskSpec::new(FuncId(1), CoreKind::AIV, &[]);
    assert_eq!(record(&|stream| stream.add_task(spec).map(|_| ())), open);
    let submit = |stream: &mut TestStream<'_>, arg: Arg<'_>| {
        stream.submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &[arg])).map(|_| ())
    };
    let endless = |stream: &mut TestStream<'_>| loop {
        submit(stream, Arg::Scalar(1))?;
    };
    assert_eq!(record(&endless), Fault::STREAM_RECORDING_FULL);
    assert_eq!(
        record(&|stream| submit(stream, Arg::BoundScalar(64))),
        Fault::STREAM_RECORDING_FULL
    );
    with_stream(|stream| {
        let fault = submit(stream, Arg::BoundScalar(0)).unwrap_err();
        assert_eq!(fault, Fault::STREAM_NOT_RECORDING);
        assert_eq!(stream.end_recording().unwrap_err(), Fault::STREAM_NOT_RECORDING);
        let mut kept = None;
        let recording = stream.record(&[whole(0)], |_, bound| {
            kept = Some(bound.tensor(0));
            Ok::<(), Fault>(())
        });
        assert_eq!(recording.unwrap().tasks, 0);
        let fault = submit(stream, Arg::In(&kept.unwrap())).unwrap_err();
        assert_eq!(fault, Fault::STREAM_STALE_TENSOR, "a placeholder outside of its recording");
        let refused = stream.scope(DependencyMode::DERIVED, |scope| {
            let outer = scope.tensor(ElementType::F32, &[8])?;
            scope.record(&[], |stream, _| submit(stream, Arg::In(&outer))).map(|_| ())
        });
        assert_eq!(refused.unwrap_err(), Fault::STREAM_REPLAY_MISFIT, "of an outer scope");
    });
}

#[test]
fn a_recording_that_there_is_no_room_for_leaves_the_others_alone() {
    let all = [0, 1, 2, 3].map(whole);
    // Its words, its edges or its touches are what there is no room for.
    let too_much: [&[Arg<'_>]; 3] =
        [&[Arg::Scalar(1); 16], &[Arg::InOut(&all[0])], &[Arg::In(&all[1]), Arg::In(&all[2])]];
    let made = |too_much: Option<&[Arg<'_>]>| {
        with_stream(|stream| {
            let [a, b, c, d] = all;
            let recording = stream
                .record(&[a], |stream, bound| {
                    piece(stream, 7, &[bound.tensor(0), b, c, d], Arg::Scalar(3))
                })
                .unwrap();
            if let Some(args) = too_much {
                let task = TensorTask::new(FuncId(3), CoreKind::AIV, args);
                let endless = stream.record(&[], |stream, _| -> Result<(), Fault> {
                    loop {
                        stream.submit_tensors(&task)?;
                    }
                });
                assert_eq!(endless.unwrap_err(), Fault::STREAM_RECORDING_FULL);
                assert_eq!(stream.end_recording().unwrap_err(), Fault::STREAM_RECORDING_FULL);
            }
            stream.replay(&recording, &Bindings { tensors: &[d], scalars: &[] }).unwrap();
        })
    };
    let expected = made(None);
    for args in too_much {
        let found = made(Some(args));
        assert_eq!((&found.words, &found.edges), (&expected.words, &expected.edges));
    }
}

#[test]
fn a_task_that_there_is_no_room_for_leaves_the_recording_before_alone() {
    // 15 words for each touch, and one for each argument: more than the words of the recording before are away.
    let view = |number: u64| {
        TensorView::dense(GmAddr(0x10_0000 * (1 + number)), ElementType::F32, &[2; 5])
    };
    let views: Vec<_> = (0..15).map(|number| view(number).slice(4, 0, 1)).collect();
    let args: Vec<_> = views.iter().map(Arg::In).collect();
    let task = TensorTask::new(FuncId(3), CoreKind::AIV, &args);
    let made = with_stream(|stream| {
        let mut last = None;
        let full = loop {
            let made = stream.record(&[], |stream, _| stream.submit_tensors(&task).map(|_| ()));
            match made {
                Ok(recording) => last = Some(recording),
                Err(fault) => break fault,
            }
        };
        assert_eq!(full, Fault::STREAM_RECORDING_FULL);
        assert_eq!(stream.end_recording().unwrap_err(), Fault::STREAM_RECORDING_FULL);
        stream.replay(&last.unwrap(), &Bindings::default()).unwrap();
    });
    let addresses: Vec<_> = views.iter().map(|view| view.address().0).collect();
    assert_eq!(made.words, [addresses]);
}

#[test]
fn a_recording_with_a_task_that_was_not_written_down_is_of_no_use() {
    with_stream(|stream| {
        let submit = |stream: &mut TestStream<'_>, arg: Arg<'_>| {
            stream.submit_tensors(&TensorTask::new(FuncId(3), CoreKind::AIV, &[arg]))
        };
        stream.begin_recording(&[]).unwrap();
        let unknown = Arg::BoundScalar(64);
        assert_eq!(submit(stream, unknown).unwrap_err(), Fault::STREAM_RECORDING_FULL);
        submit(stream, Arg::Scalar(1)).unwrap();
        assert_eq!(stream.end_recording().unwrap_err(), Fault::STREAM_RECORDING_FULL);
    });
}
