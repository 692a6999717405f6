'use strict';
// Vectors are arrays of three numbers, quaternions w x y z, rotations nine numbers row by row, as MuJoCo has them.

const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const subtract = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const scaled = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const lengthOf = (a) => Math.sqrt(dot(a, a));

function unit(a) {
  const n = lengthOf(a);
  return n > 1e-15 ? scaled(a, 1 / n) : [0, 0, 1];
}

/** v turned by q. */
function turned(q, v) {
  const u = [q[1], q[2], q[3]];
  const t = scaled(cross(u, v), 2);
  return add(add(v, scaled(t, q[0])), cross(u, t));
}

/** The shortest turn that takes z to this direction, of length 1. */
function quatTo(way) {
  if (way[2] < -0.999999) return [0, 1, 0, 0];
  const w = Math.sqrt((1 + way[2]) / 2);
  return [w, -way[1] / (2 * w), way[0] / (2 * w), 0];
}

const turnedByRows = (r, v) => [r[0] * v[0] + r[1] * v[1] + r[2] * v[2], r[3] * v[0] + r[4] * v[1] + r[5] * v[2],
  r[6] * v[0] + r[7] * v[1] + r[8] * v[2]];

/** Columns right, up, back of a camera that looks against `back`; its up is the world's z as far as that goes. */
function axesLooking(back) {
  const z = unit(back);
  let x = cross([0, 0, 1], z);
  x = dot(x, x) > 1e-18 ? unit(x) : [1, 0, 0];
  return { right: x, up: unit(cross(z, x)), back: z };
}

/** Column-major, as WebGL takes it: a frustum whose sides are given at a distance of 1 m. */
function frustum(l, near, far) {
  const w = l.right - l.left, h = l.top - l.bottom;
  return new Float32Array([2 / w, 0, 0, 0, 0, 2 / h, 0, 0, (l.right + l.left) / w, (l.top + l.bottom) / h,
    -(far + near) / (far - near), -1, 0, 0, -2 * far * near / (far - near), 0]);
}

function parallelFrustum(l, near, far) {
  const w = l.right - l.left, h = l.top - l.bottom;
  return new Float32Array([2 / w, 0, 0, 0, 0, 2 / h, 0, 0, 0, 0, -2 / (far - near), 0, -(l.right + l.left) / w,
    -(l.top + l.bottom) / h, -(far + near) / (far - near), 1]);
}
