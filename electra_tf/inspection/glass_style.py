# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The page's style sheet; it follows the reader's light or dark setting."""

STYLE = """\
:root { color-scheme: light dark; --ink: #1c1c1e; --paper: #fff;
  --soft: #6a6a70; --line: #d8d8dd; --card: #f6f6f8; --bar: #4a78c8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececf0; --paper: #18181b; --soft: #a0a0a8;
    --line: #3a3a42; --card: #222227; --bar: #7ba2e8; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.4rem; margin: 0 0 .5rem; }
h2 { font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }
.legend, .model, .notes, .scale { color: var(--soft); font-size: .85rem;
  overflow-wrap: anywhere; }
.model { margin: .2rem 0 0; }
.scale span { display: inline-block; padding: 0 .6rem; color: #111; }
section { border-top: 1px solid var(--line); padding: 1.2rem 0; }
.tokens { list-style: none; display: flex; flex-wrap: wrap; margin: 1rem 0;
  padding: 0; gap: .5rem .25rem; }
.token { position: relative; display: flex; flex-direction: column;
  align-items: center; text-align: center; }
.above { height: 1.2rem; line-height: 1.2rem; font-size: .8rem;
  color: var(--soft); text-decoration: line-through; }
.word { padding: .15rem .45rem; border-radius: .3rem; color: #111;
  background: #e4e4e8; border: 2px solid transparent; }
.masked .word { border-color: #333; font-weight: 600; }
@media (prefers-color-scheme: dark) {
  .masked .word { border-color: #fff; } }
.missed, .false-alarm { text-decoration: underline wavy #b00020;
  text-underline-offset: .2em; }
.special { opacity: .55; }
.below { font-size: .72rem; line-height: 1.25; color: var(--soft); }
.popup { display: none; position: absolute; z-index: 1; top: 100%; left: 0;
  width: max-content; max-width: 20rem; padding: .5rem .7rem;
  text-align: left; font-size: .8rem; background: var(--card);
  border: 1px solid var(--line); border-radius: .4rem;
  box-shadow: 0 .3rem .8rem #0003; }
.token:hover .popup, .token:focus .popup { display: block; }
.row { display: grid; grid-template-columns: 6rem 5rem auto; gap: .5rem;
  align-items: center; }
.name { overflow: hidden; text-overflow: ellipsis; }
.track { height: .6rem; background: var(--line); border-radius: .2rem; }
.bar { display: block; height: 100%; background: var(--bar);
  border-radius: .2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; margin-top: .6rem; }
th, td { text-align: left; padding: .15rem .8rem .15rem 0;
  border-bottom: 1px solid var(--line); vertical-align: top; }
summary { cursor: pointer; color: var(--soft); font-size: .85rem; }
"""
