"""ONNX Runtime's provider for CANN on our devices, beside its provider for the processor: networks, a whole pipeline, and types of files.

Usage: pto compat cann run -- python onnxruntime_cann.py [networks] [modes] [pipeline] [files] [speed] [refusal] [part]; without a word, all of them but the last.

`cargo xtask acceptance --onnx` calls it in an environment with the packages onnxruntime-cann, rapidocr-onnxruntime and magika, none of which is changed. The suite
calls it with `part`, in an environment with onnxruntime-cann, rapidocr-onnxruntime and onnx. Each part asserts which providers a session has, and the counter of our
library proves that every run was one of ours.
"""

import ctypes
import importlib.util
import io
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
import warnings
import zipfile

import numpy as np
import onnxruntime

CANN = "CANNExecutionProvider"
CPU = "CPUExecutionProvider"
THREADS = 2
RELATIVE, ABSOLUTE = 1e-3, 1e-4

_library = ctypes.CDLL("libascendcl.so")


def runs():
    """How many runs of models have ended on our devices."""
    count = ctypes.c_uint64()
    if _library.ptoAclModelRuns(ctypes.byref(count)) != 0:
        sys.exit("ptoAclModelRuns fails")
    return count.value


def package(name):
    """The folder of a package, without importing it."""
    return pathlib.Path(importlib.util.find_spec(name).origin).parent


def session(model, provider, **of_provider):
    """A session on this provider, with two threads where it is the processor's."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    made = onnxruntime.InferenceSession(str(model), options, providers=[(provider, of_provider)])
    if made.get_providers()[0] != provider:
        sys.exit(f"{model}: the session has the providers {made.get_providers()}, and {provider} was asked for")
    return made


def drawn(shape):
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def networks_of_ocr():
    """The three networks, each with extents to build for; the second ones make the provider build again."""
    folder = package("rapidocr_onnxruntime") / "models"
    return [
        ("classifier", folder / "ch_ppocr_mobile_v2.0_cls_infer.onnx", [(1, 3, 48, 192), (6, 3, 48, 192)]),
        ("detection", folder / "ch_PP-OCRv4_det_infer.onnx", [(1, 3, 736, 736), (1, 3, 320, 480)]),
        ("recognition", folder / "ch_PP-OCRv4_rec_infer.onnx", [(1, 3, 48, 320), (2, 3, 48, 480)]),
    ]


def compared(expected, found):
    """The largest absolute difference, the largest relative one of elements that are not small, and whether all are within the tolerance."""
    difference = np.abs(expected.astype(np.float64) - found)
    large = np.abs(expected) > ABSOLUTE
    relative = (difference[large] / np.abs(expected[large])).max(initial=0.0)
    return difference.max(initial=0.0), relative, bool((difference <= ABSOLUTE + RELATIVE * np.abs(expected)).all())


def networks(names=("classifier", "detection", "recognition"), most=2):
    """Networks beside the processor's provider, for so many extents each."""
    print(f"{'network':<12} {'input':<18} {'provider':<22} {'runs':>4} {'absolute':>9} {'relative':>9}")
    are_right = True
    for name, model, shapes in networks_of_ocr():
        if name not in names:
            continue
        cpu, cann = session(model, CPU), session(model, CANN)
        for shape in shapes[:most]:
            given = {cpu.get_inputs()[0].name: drawn(shape)}
            expected, before = cpu.run(None, given), runs()
            found, counted = cann.run(None, given), runs() - before
            absolutes, relatives, are_close = zip(*(compared(*pair) for pair in zip(expected, found)))
            absolute, relative, is_close = max(absolutes), max(relatives), all(are_close)
            is_right = is_close and counted > 0 and [one.shape for one in expected] == [one.shape for one in found]
            are_right &= is_right
            shown = "x".join(map(str, shape))
            print(f"{name:<12} {shown:<18} {cann.get_providers()[0]:<22} {counted:>4} {absolute:>9.1e} {relative:>9.1e} {'' if is_right else 'WRONG'}")
    return are_right


def modes():
    """Nodes one by one, and models that the provider keeps in files: the second session loads what the first one has built."""
    are_right = True
    for name, model, shapes in (networks_of_ocr()[0], networks_of_ocr()[2]):
        cpu = session(model, CPU)
        given = {cpu.get_inputs()[0].name: drawn(shapes[0])}
        expected = cpu.run(None, given)
        with tempfile.TemporaryDirectory() as folder:
            home = os.getcwd()
            os.chdir(folder)
            for mode, options in (("nodes one by one", {"enable_cann_graph": False}), ("built, kept", {"dump_om_model": True}), ("from the file", {"dump_om_model": True})):
                there, before = len(os.listdir()), runs()
                found = session(model, CANN, **options).run(None, given)
                counted, written = runs() - before, len(os.listdir()) - there
                absolutes, relatives, are_close = zip(*(compared(*pair) for pair in zip(expected, found)))
                is_right = all(are_close) and counted > 0 and written == (mode == "built, kept")
                are_right &= is_right
                print(f"{name:<12} {mode:<18} {counted:>4} runs {max(absolutes):>9.1e} {max(relatives):>9.1e} {written} files {'' if is_right else 'WRONG'}")
            os.chdir(home)
    return are_right


class Everywhere:
    """Lets a package's sessions run on a provider: the package asks for the processor's, and has no option for another one."""

    def __init__(self, module, name, provider):
        self.module, self.name, self.provider, self.made = module, name, provider, []
        self.original = getattr(module, name)

    def __enter__(self):
        def make(model, sess_options=None, providers=None, **more):
            made = self.original(model, sess_options=sess_options, providers=[self.provider], **more)
            self.made.append(made)
            return made

        setattr(self.module, self.name, make)
        return self

    def __exit__(self, *error):
        setattr(self.module, self.name, self.original)
        for made in self.made:
            if made.get_providers()[0] != self.provider:
                sys.exit(f"a session has the providers {made.get_providers()}, and {self.provider} was asked for")


PAGE = [
    "The quick brown fox jumps over the lazy dog",
    "Invoice 2026-11-30   Total: 1,284.50 EUR",
    "A program from somewhere else",
    "reads this page on a simulated device",
    "0123456789  +49 30 901820  (c) 1998",
    "Matrix, vector, tile, stream and event",
]


def page():
    """A drawn page of text, as the pipeline takes it."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (900, 560), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size=34)
    for row, line in enumerate(PAGE):
        draw.text((40, 40 + 84 * row), line, fill=(20, 20, 60 + 20 * row), font=font)
    return np.asarray(image)[:, :, ::-1].copy()


def pipeline():
    from rapidocr_onnxruntime import RapidOCR
    from rapidocr_onnxruntime.utils import infer_engine

    image, found, counted = page(), {}, 0
    for provider in (CPU, CANN):
        with Everywhere(infer_engine, "InferenceSession", provider):
            reader = RapidOCR()
        before = runs()
        found[provider], _ = reader(image)
        counted = runs() - before
    cpu, cann = found[CPU] or [], found[CANN] or []
    words = [[line[1] for line in side] for side in (cpu, cann)]
    boxes = [np.array([line[0] for line in side], dtype=np.float64) for side in (cpu, cann)]
    distance = np.abs(boxes[0] - boxes[1]).max(initial=0.0) if boxes[0].shape == boxes[1].shape else np.inf
    is_right = len(cpu) == len(PAGE) and words[0] == words[1] and distance == 0 and counted > 0
    for line in words[1]:
        print(f"  read: {line}")
    print(f"page: {len(cann)} of {len(cpu)} lines, the same words: {words[0] == words[1]}, boxes differ by {distance} pixels, {counted} runs on our device")
    return is_right


def texts():
    """Contents of files in many languages, by the ends of their names."""
    return {
        "c": "#include <stdio.h>\n\nint main(int argc, char **argv) {\n    for (int i = 0; i < argc; i++) printf(\"%s\\n\", argv[i]);\n    return 0;\n}\n",
        "cpp": "#include <iostream>\n#include <vector>\n\ntemplate <typename T>\nclass Stack {\n  std::vector<T> all;\npublic:\n  void push(T one) { all.push_back(one); }\n};\n\nint main() { Stack<int> s; s.push(1); std::cout << \"done\" << std::endl; }\n",
        "rs": "use std::collections::HashMap;\n\nfn main() {\n    let mut counts: HashMap<String, usize> = HashMap::new();\n    for word in std::env::args() {\n        *counts.entry(word).or_insert(0) += 1;\n    }\n    println!(\"{counts:?}\");\n}\n",
        "go": "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() {\n\tfor i, arg := range os.Args {\n\t\tfmt.Println(i, arg)\n\t}\n}\n",
        "java": "package org.example;\n\nimport java.util.List;\n\npublic class Main {\n    public static void main(String[] args) {\n        System.out.println(List.of(args));\n    }\n}\n",
        "py": "import sys\n\n\ndef main():\n    for number, word in enumerate(sys.argv):\n        print(number, word)\n\n\nif __name__ == \"__main__\":\n    main()\n",
        "js": "const fs = require('fs');\n\nfunction count(text) {\n  return text.split('\\n').filter((line) => line.length > 0).length;\n}\n\nmodule.exports = { count };\nconsole.log(count(fs.readFileSync(process.argv[2], 'utf8')));\n",
        "ts": "interface Point { x: number; y: number }\n\nexport function length(p: Point): number {\n  return Math.sqrt(p.x * p.x + p.y * p.y);\n}\n\nconst origin: Point = { x: 0, y: 0 };\nconsole.log(length(origin));\n",
        "html": "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>A page</title></head>\n<body><h1>Title</h1><p>Some text.</p></body>\n</html>\n",
        "css": "body {\n  margin: 0;\n  font-family: sans-serif;\n}\n\n.menu > li:hover {\n  color: #336699;\n  padding: 2px 4px;\n}\n",
        "json": json.dumps({"name": "example", "version": 3, "parts": [{"id": n, "size": n * n} for n in range(12)]}, indent=2),
        "xml": "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<catalog>\n" + "".join(f"  <book id=\"b{n}\"><title>Part {n}</title></book>\n" for n in range(8)) + "</catalog>\n",
        "yaml": "version: 2\nservices:\n  web:\n    image: nginx\n    ports:\n      - \"80:80\"\n    environment:\n      MODE: production\n",
        "toml": "[package]\nname = \"example\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nserde = { version = \"1\", features = [\"derive\"] }\n",
        "ini": "[server]\nhost = localhost\nport = 8080\n\n[paths]\nlog = /var/log/app.log\ndata = /var/lib/app\n",
        "sh": "#!/bin/bash\nset -e\nfor file in \"$@\"; do\n  if [ -f \"$file\" ]; then\n    echo \"$file: $(wc -l < \"$file\")\"\n  fi\ndone\n",
        "bat": "@echo off\r\nsetlocal\r\nfor %%f in (*.txt) do (\r\n  echo %%f\r\n)\r\nif errorlevel 1 goto end\r\n:end\r\nendlocal\r\n",
        "ps1": "param([string]$Path = '.')\n\nGet-ChildItem -Path $Path -Recurse |\n  Where-Object { $_.Length -gt 1MB } |\n  ForEach-Object { Write-Host $_.FullName }\n",
        "rb": "class Stack\n  def initialize\n    @all = []\n  end\n\n  def push(one)\n    @all << one\n    self\n  end\nend\n\nputs Stack.new.push(1).inspect\n",
        "php": "<?php\nnamespace App;\n\nclass Counter {\n    private int $count = 0;\n    public function next(): int { return ++$this->count; }\n}\n\n$counter = new Counter();\necho $counter->next(), PHP_EOL;\n",
        "pl": "#!/usr/bin/perl\nuse strict;\nuse warnings;\n\nmy %count;\nwhile (my $line = <STDIN>) {\n    chomp $line;\n    $count{$_}++ for split /\\s+/, $line;\n}\nprint \"$_ $count{$_}\\n\" for sort keys %count;\n",
        "lua": "local Stack = {}\nStack.__index = Stack\n\nfunction Stack.new()\n  return setmetatable({ all = {} }, Stack)\nend\n\nfunction Stack:push(one)\n  table.insert(self.all, one)\nend\n\nprint(#Stack.new().all)\n",
        "sql": "CREATE TABLE users (\n  id INTEGER PRIMARY KEY,\n  name VARCHAR(80) NOT NULL\n);\n\nINSERT INTO users (id, name) VALUES (1, 'Ada');\nSELECT u.name, COUNT(*) FROM users u GROUP BY u.name ORDER BY 2 DESC;\n",
        "kt": "package org.example\n\ndata class Point(val x: Int, val y: Int)\n\nfun main(args: Array<String>) {\n    val points = listOf(Point(1, 2), Point(3, 4))\n    println(points.map { it.x + it.y })\n}\n",
        "swift": "import Foundation\n\nstruct Point {\n    var x: Double\n    var y: Double\n    func length() -> Double { return sqrt(x * x + y * y) }\n}\n\nlet p = Point(x: 3, y: 4)\nprint(p.length())\n",
        "scala": "object Main extends App {\n  case class Point(x: Int, y: Int)\n  val points = List(Point(1, 2), Point(3, 4))\n  println(points.map(p => p.x + p.y).sum)\n}\n",
        "hs": "module Main where\n\nimport qualified Data.Map as Map\n\ncount :: [String] -> Map.Map String Int\ncount = foldr (\\w -> Map.insertWith (+) w 1) Map.empty\n\nmain :: IO ()\nmain = getContents >>= print . count . words\n",
        "tex": "\\documentclass{article}\n\\usepackage{amsmath}\n\\begin{document}\n\\section{Title}\nLet $x \\in \\mathbb{R}$ be such that\n\\begin{equation}\n  x^2 = 2.\n\\end{equation}\n\\end{document}\n",
        "md": "# Title\n\nSome *text* with a [link](https://example.org).\n\n- one\n- two\n\n```sh\nmake test\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        "csv": "date,city,degrees\n" + "".join(f"2026-01-{day:02},Berlin,{day - 4}\n" for day in range(1, 29)),
        "diff": "--- a/main.c\n+++ b/main.c\n@@ -1,4 +1,4 @@\n int main(void) {\n-    return 1;\n+    return 0;\n }\n",
        "cmake": "cmake_minimum_required(VERSION 3.16)\nproject(example LANGUAGES CXX)\nadd_executable(example main.cpp)\ntarget_link_libraries(example PRIVATE m)\ninstall(TARGETS example)\n",
        "mk": "CC = gcc\nCFLAGS = -O2 -Wall\n\nall: example\n\nexample: main.o util.o\n\t$(CC) -o $@ $^\n\n%.o: %.c\n\t$(CC) $(CFLAGS) -c $<\n\nclean:\n\trm -f *.o example\n",
        "proto": "syntax = \"proto3\";\n\npackage example;\n\nmessage Point {\n  int32 x = 1;\n  int32 y = 2;\n}\n\nservice Points {\n  rpc Get(Point) returns (Point);\n}\n",
        "vhdl": "library ieee;\nuse ieee.std_logic_1164.all;\n\nentity gate is\n  port (a, b : in std_logic; y : out std_logic);\nend entity;\n\narchitecture rtl of gate is\nbegin\n  y <= a and b;\nend architecture;\n",
        "v": "module counter(input clk, input rst, output reg [7:0] q);\n  always @(posedge clk or posedge rst)\n    if (rst) q <= 8'd0;\n    else q <= q + 1'b1;\nendmodule\n",
        "asm": "section .text\nglobal _start\n\n_start:\n    mov eax, 1\n    xor ebx, ebx\n    int 0x80\n\nsection .data\nmessage db 'hello', 10\n",
        "svg": "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"100\" viewBox=\"0 0 100 100\"><circle cx=\"50\" cy=\"50\" r=\"40\" fill=\"#369\"/></svg>\n",
        "ics": "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:1@example.org\r\nDTSTART:20261130T100000Z\r\nSUMMARY:Meeting\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
        "vcf": "BEGIN:VCARD\nVERSION:3.0\nN:Lovelace;Ada;;;\nFN:Ada Lovelace\nTEL:+44 20 7946 0000\nEND:VCARD\n",
        "eml": "From: ada@example.org\nTo: charles@example.org\nSubject: The engine\nDate: Mon, 30 Nov 2026 10:00:00 +0000\nContent-Type: text/plain\n\nDear Charles,\nit works.\n",
        "pem": "-----BEGIN CERTIFICATE-----\n" + "\n".join("MIIB" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * 1 for _ in range(12)) + "\n-----END CERTIFICATE-----\n",
        "rtf": "{\\rtf1\\ansi\\deff0{\\fonttbl{\\f0 Times New Roman;}}\\f0\\fs24 Some text in \\b bold\\b0 .\\par}\n",
        "srt": "".join(f"{n}\n00:00:{n:02},000 --> 00:00:{n + 1:02},000\nLine {n} of the film.\n\n" for n in range(1, 20)),
        "r": "x <- c(1, 2, 3, 4)\ny <- x^2 + rnorm(length(x))\nmodel <- lm(y ~ x)\nprint(summary(model))\nplot(x, y, main = \"A plot\")\n",
        "jl": "module Points\n\nstruct Point{T}\n    x::T\n    y::T\nend\n\nBase.length(p::Point) = sqrt(p.x^2 + p.y^2)\n\nend\n\nusing .Points\nprintln(Points.Point(3, 4))\n",
        "m": "function y = square(x)\n% SQUARE of every element\n  y = x .^ 2;\nend\n\nfor k = 1:10\n  disp(square(k));\nend\n",
        "f90": "program main\n  implicit none\n  integer :: i\n  real :: x(10)\n  do i = 1, 10\n    x(i) = i * 0.5\n  end do\n  print *, sum(x)\nend program main\n",
        "clj": "(ns example.core\n  (:require [clojure.string :as str]))\n\n(defn count-words [text]\n  (frequencies (str/split text #\"\\s+\")))\n\n(defn -main [& args]\n  (println (count-words (first args))))\n",
        "lisp": "(defun factorial (n)\n  \"The product of 1 to N.\"\n  (if (<= n 1)\n      1\n      (* n (factorial (- n 1)))))\n\n(format t \"~a~%\" (factorial 10))\n",
        "erl": "-module(counter).\n-export([start/0, loop/1]).\n\nstart() -> spawn(?MODULE, loop, [0]).\n\nloop(N) ->\n    receive\n        {next, From} -> From ! N, loop(N + 1);\n        stop -> ok\n    end.\n",
        "dart": "import 'dart:io';\n\nclass Point {\n  final int x, y;\n  const Point(this.x, this.y);\n}\n\nvoid main(List<String> arguments) {\n  stdout.writeln(const Point(1, 2).x);\n}\n",
        "gitignore": "*.o\n*.pyc\n__pycache__/\nbuild/\n!build/keep\n.venv/\n",
        "Dockerfile": "FROM debian:12\nRUN apt-get update && apt-get install -y gcc\nCOPY . /src\nWORKDIR /src\nRUN make\nCMD [\"./example\"]\n",
        "txt": "It was a bright cold day in April, and the clocks were striking. Few people looked up, since the clocks of the town had never been right before.\n" * 4,
    }


def binaries(folder):
    """Files that programs write: pictures, archives, sounds, tables, code."""
    import bz2
    import gzip
    import lzma
    import marshal
    import pickle
    import sqlite3
    import tarfile
    import wave

    from PIL import Image

    made = {}
    noise = np.random.default_rng(3).integers(0, 255, (48, 64, 3)).astype(np.uint8)
    for form in ("png", "jpeg", "gif", "bmp", "tiff", "webp", "ico", "ppm", "tga", "pcx", "pdf", "icns", "sgi", "dds", "eps"):
        held = io.BytesIO()
        try:
            Image.fromarray(noise).save(held, form)
        except (OSError, KeyError):
            continue
        made[form] = held.getvalue()
    text = "\n".join(PAGE * 20).encode()
    made.update(gz=gzip.compress(text, mtime=0), bz2=bz2.compress(text), xz=lzma.compress(text), lzma=lzma.compress(text, lzma.FORMAT_ALONE))
    for form, name in (("zip", "a.txt"), ("jar", "META-INF/MANIFEST.MF"), ("docx", "word/document.xml"), ("xlsx", "xl/workbook.xml"), ("epub", "mimetype"), ("odt", "content.xml")):
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo(name), text)
            archive.writestr(zipfile.ZipInfo("[Content_Types].xml"), "<Types/>")
        made[form] = held.getvalue()
    for form, mode in (("tar", "w"), ("tgz", "w:gz")):
        held = io.BytesIO()
        with tarfile.open(fileobj=held, mode=mode) as archive:
            member = tarfile.TarInfo("page.txt")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
        made[form] = held.getvalue()
    held = io.BytesIO()
    with wave.open(held, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(noise.tobytes())
    made["wav"] = held.getvalue()
    made["pickle"] = pickle.dumps({"page": PAGE, "noise": noise.tolist()})
    held = io.BytesIO()
    np.save(held, noise)
    made["npy"] = held.getvalue()
    held = io.BytesIO()
    np.savez(held, noise=noise)
    made["npz"] = held.getvalue()
    database = folder / "kept.sqlite"
    with sqlite3.connect(database) as table:
        table.execute("CREATE TABLE page (number INTEGER, line TEXT)")
        table.executemany("INSERT INTO page VALUES (?, ?)", enumerate(PAGE))
    made["sqlite"] = database.read_bytes()
    database.unlink()
    made["pyc"] = importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(compile("print(1)", "a", "exec"))
    made["class"] = bytes.fromhex("cafebabe00000034001d0a0006000f09001000110800120a001300140700150700160100063c696e69743e") + bytes(200)
    made["elf"] = pathlib.Path(os.path.realpath(sys.executable)).read_bytes()[:200_000]
    made["so"] = next(package("numpy").rglob("*.so")).read_bytes()
    made["exe"] = b"MZ" + bytes(58) + (128).to_bytes(4, "little") + bytes(64) + b"PE\0\0" + bytes(400)
    made["wasm"] = b"\0asm\1\0\0\0" + bytes(range(60))
    made["midi"] = b"MThd\0\0\0\6\0\1\0\1\0\x60MTrk\0\0\0\x14" + bytes(20)
    made["flv"] = b"FLV\1\5\0\0\0\t\0\0\0\0" + bytes(300)
    made["ogg"] = b"OggS\0\2" + bytes(20) + b"\1\x1e\1vorbis" + bytes(300)
    made["flac"] = b"fLaC\0\0\0\x22" + bytes(300)
    made["mp4"] = b"\0\0\0\x20ftypisom\0\0\2\0isomiso2avc1mp41" + bytes(300)
    made["7z"] = b"7z\xbc\xaf\x27\x1c\0\4" + bytes(300)
    made["rar"] = b"Rar!\x1a\7\1\0" + bytes(300)
    made["ttf"] = b"\0\1\0\0\0\x0c\0\x80\0\3\0\x40" + b"OS/2cmapglyfheadhheahmtxlocamaxpname" + bytes(300)
    made["random"] = np.random.default_rng(5).bytes(4096)
    made["zeros"] = bytes(4096)
    made["onnx"] = networks_of_ocr()[0][1].read_bytes()
    return made


FILES = 100


def files():
    import magika.magika
    from magika import Magika

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        contents = {**{end: text.encode() for end, text in texts().items()}, **binaries(folder)}
        contents = dict(list(contents.items())[:FILES])
        paths = []
        for end, content in contents.items():
            paths.append(folder / f"file.{end}")
            paths[-1].write_bytes(content)
        labels, counted = {}, 0
        for provider in (CPU, CANN):
            with Everywhere(magika.magika.rt, "InferenceSession", provider):
                judge = Magika()
            before = runs()
            results = judge.identify_paths(paths)
            counted = runs() - before
            labels[provider] = [(str(result.dl.label), str(result.output.label), result.score) for result in results]
    differ = [path.name for path, a, b in zip(paths, labels[CPU], labels[CANN]) if a[:2] != b[:2]]
    score = max(abs(a[2] - b[2]) for a, b in zip(labels[CPU], labels[CANN]))
    kinds = len({label[1] for label in labels[CANN]})
    print(f"files: {len(paths)} of {kinds} types by Magika, {len(differ)} with another label than on the processor{''.join(f' {name}' for name in differ)}, scores differ by {score:.1e}, {counted} runs on our device")
    return len(paths) == FILES and not differ and counted > 0


def speed():
    print(f"medians of a run in ms, and the time that processors took for it; the processor's provider has {THREADS} threads")
    print(f"{'network':<12} {'input':<14} {'processor':>10} {'our device':>11} {'times':>6} {'processor':>10} {'our device':>11} {'times':>6}")
    for name, model, shapes in networks_of_ocr():
        given = {"x": drawn(shapes[0])}
        medians, taken = [], []
        for provider in (CPU, CANN):
            made, times, rounds = session(model, provider), [], 40 if name == "classifier" else 7
            made.run(None, given)
            before = time.process_time()
            for _ in range(rounds):
                start = time.perf_counter()
                made.run(None, given)
                times.append(1e3 * (time.perf_counter() - start))
            taken.append(1e3 * (time.process_time() - before) / rounds)
            medians.append(statistics.median(times))
        shown = "x".join(map(str, shapes[0]))
        columns = [f"{cpu:>10.2f} {cann:>11.2f} {cann / cpu:>6.1f}" for cpu, cann in (medians, taken)]
        print(f"{name:<12} {shown:<14} {columns[0]} {columns[1]}")
    return True


def varint(value):
    made = b""
    while value >= 128:
        made, value = made + bytes([value & 127 | 128]), value >> 7
    return made + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def refusal():
    """A model with operators that the provider claims, and that there are none of here: the error names node and type."""
    tensor = field(1, 1) + field(2, field(1, field(1, 1)) + field(1, field(1, 4)) + field(1, field(1, 8)) + field(1, field(1, 8)))
    info = {name: field(1, name) + field(2, field(1, tensor)) for name in ("x", "rois")}
    rois = field(1, "rois") + field(2, field(1, field(1, 1) + field(2, field(1, field(1, 2)) + field(1, field(1, 5)))))
    shape = field(20, 7) + field(1, "pooled_shape") + field(8, 2) + field(8, 2)
    node = field(1, "x") + field(1, "rois") + field(2, "y") + field(3, "the_node") + field(4, "MaxRoiPool") + field(5, shape)
    out = field(1, "y") + field(2, field(1, field(1, 1)))
    graph = field(1, node) + field(2, "g") + field(11, info["x"]) + field(11, rois) + field(12, out)
    model = field(1, 8) + field(7, graph) + field(8, field(2, 13))
    made = onnxruntime.InferenceSession(model, providers=[CANN])
    # The provider forgets the message of the interface. Standard error has it as well.
    with tempfile.TemporaryFile() as captured:
        kept = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            made.run(None, {"x": drawn((1, 4, 8, 8)), "rois": np.zeros((2, 5), np.float32)})
        except Exception:  # noqa: BLE001: ONNX Runtime has classes of its own for each code
            pass
        else:
            captured.write(b"it was not refused")
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        captured.seek(0)
        said = [line for line in captured.read().decode().splitlines() if "onnxruntime:" not in line]
    print("refusal:", *said, sep="\n  ")
    return any("node the_node (MaxRoiPool, version 13): there is no such operator here" in line for line in said)


#: Files of the package onnx with node cases of operators that the provider knows.
CASES = [
    "abs", "add", "averagepool", "batch_normalization", "cast", "ceil", "clip", "concat", "conv", "cos", "div", "equal", "erf", "exp", "expand", "flatten", "floor", "gather", "gemm",
    "globalaveragepool", "greater", "leakyrelu", "less", "log", "matmul", "max", "maxpool", "mul", "neg", "pow", "reducemean", "relu", "reshape", "sigmoid",
    "slice", "softmax", "sqrt", "squeeze", "sub", "tanh", "topk", "transpose", "unsqueeze", "where",
]  # fmt: skip


def cases(wanted):
    """Node cases of the package onnx, evenly chosen: those that the provider takes run on our device."""
    import onnx
    from onnx.backend.test.case import node

    # A file adds its cases when it is imported; all of them take long.
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in CASES:
            importlib.import_module(f"onnx.backend.test.case.node.{name}")
    known = node._NodeTestCases
    chosen = known[:: max(1, len(known) // wanted)][:wanted]
    taken, wrong, left = 0, [], 0
    for case in chosen:
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        # The runtime may be older than the package.
        model.ir_version = min(model.ir_version, 10)
        given = {one.name: np.asarray(value) for one, value in zip(model.graph.input, case.data_sets[0][0])}
        # Extents, axes and the like are constants, as they are in networks: here they decide shapes when the model is built.
        for one in list(model.graph.input)[1:]:
            if given[one.name].dtype == np.int64:
                model.graph.initializer.append(onnx.numpy_helper.from_array(given.pop(one.name), one.name))
                model.graph.input.remove(one)
        try:
            made = onnxruntime.InferenceSession(model.SerializeToString(), providers=[CANN])
        except Exception:  # noqa: BLE001: ONNX Runtime has classes of its own for each code
            left += 1
            continue
        before = runs()
        try:
            found = made.run(None, given)
        except Exception as error:  # noqa: BLE001
            wrong.append(f"{case.name}: {error}")
            continue
        if runs() == before:
            left += 1
            continue
        taken += 1
        if not all(one.shape == np.shape(value) and np.allclose(one, value, case.rtol, case.atol, equal_nan=True) for one, value in zip(found, case.data_sets[0][1])):
            wrong.append(case.name)
    for line in wrong:
        print(f"WRONG {line}")
    print(f"node cases of onnx: {len(chosen)} of {len(known)}, {taken} on our device, {len(wrong)} wrong, {left} that the provider leaves to the processor or refuses")
    return not wrong and taken >= wanted // 3


def part():
    """What the suite runs."""
    return networks(("classifier",), 1) and cases(60)


PARTS = {"networks": networks, "modes": modes, "pipeline": pipeline, "files": files, "refusal": refusal, "speed": speed}

if __name__ == "__main__":
    onnxruntime.set_default_logger_severity(3)
    asked = sys.argv[1:] or list(PARTS)
    wrong = [name for name in asked if not {**PARTS, "part": part}[name]()]
    if wrong:
        sys.exit(f"not right: {', '.join(wrong)}")
