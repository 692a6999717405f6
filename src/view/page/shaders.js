// What the graphics processor computes: instances of a mesh by their links' poses, light as OpenGL's fixed function gives
// it (The OpenGL Graphics System, version 2.1, section 2.14.1), textures as MuJoCo lays them on.

/** What a light gives at a point, from the eye, with a normal of length 1. */
const kLight = `
uniform int u_lights;
uniform vec4 u_light[48];                  // position, directional; direction, cosine of the cone; attenuation, exponent; colours
uniform float u_ambient;
vec3 light_of(int i, vec3 at, vec3 normal, vec3 rgb, vec4 material) {
  vec4 place = u_light[6 * i], axis = u_light[6 * i + 1], fading = u_light[6 * i + 2];
  vec3 to_light = -axis.xyz;
  float strength = 1.0;
  if (place.w == 0.0) {
    vec3 way = place.xyz - at;
    float away = max(length(way), 1e-10);
    to_light = way / away;
    strength = 1.0 / (fading.x + away * (fading.y + away * fading.z));
    if (axis.w >= -1.0) {
      float along = -dot(to_light, axis.xyz);
      strength *= along >= axis.w ? pow(max(along, 0.0), fading.w) : 0.0;
    }
  }
  float facing = max(dot(normal, to_light), 0.0), shine = 0.0;
  if (material.y > 0.0 && facing > 0.0)
    shine = pow(max(dot(normal, normalize(to_light - normalize(at))), 0.0), max(material.z, 1e-3)) * material.y;
  return strength * ((u_light[6 * i + 3].rgb + facing * u_light[6 * i + 4].rgb) * rgb + shine * u_light[6 * i + 5].rgb);
}`;

const kVertexShader = `#version 300 es
precision highp float;
precision highp int;
${kLight}
layout(location = 0) in vec4 a_position;   // w: moved along z by so many of i_pos.w, for a capsule's ends
layout(location = 1) in vec3 a_normal;
layout(location = 2) in vec2 a_texcoord;
layout(location = 3) in vec4 i_pos;        // in the link's frame; w: half length of a capsule
layout(location = 4) in vec4 i_quat;       // w x y z
layout(location = 5) in vec4 i_size;       // w: shape
layout(location = 6) in vec4 i_rgba;
layout(location = 7) in vec4 i_material;   // emission, specular, exponent, mapping
layout(location = 8) in vec4 i_scale;       // w and i_number.w: where its environment stands
layout(location = 9) in vec4 i_offset;     // of texture coordinates; step of a plane without end
layout(location = 10) in vec4 i_number;    // link, environment, geom
uniform highp sampler2D u_pose;
uniform vec3 u_eye;
uniform mat3 u_turn;                       // world to camera
uniform mat4 u_projection;
uniform vec4 u_picked;                     // link and environment
out vec3 v_world;                          // from the eye
out vec3 v_normal;
out vec3 v_local;
out vec2 v_texcoord;
flat out vec4 v_rgba, v_material, v_scale, v_size;
flat out vec2 v_offset;
flat out float v_picked, v_behind;
out vec3 v_lit;                            // of boxes: light is computed at corners and blended between, as MuJoCo has it
flat out uint v_number;
uniform int u_geoms;
vec3 turned(vec4 q, vec3 v) {
  vec3 t = 2.0 * cross(q.yzw, v);
  return v + q.x * t + cross(q.yzw, t);
}
void main() {
  ivec2 at = ivec2(2 * int(i_number.x), int(i_number.y));
  vec3 link_pos = texelFetch(u_pose, at, 0).xyz;
  vec4 link = texelFetch(u_pose, at + ivec2(1, 0), 0);
  vec3 local = a_position.xyz * i_size.xyz + vec3(0, 0, a_position.w * i_pos.w);
  vec3 origin = link_pos + turned(link, i_pos.xyz) + vec3(i_scale.w, i_number.w, 0) - u_eye;
  vec4 q = vec4(link.x * i_quat.x - dot(link.yzw, i_quat.yzw),
                link.x * i_quat.yzw + i_quat.x * link.yzw + cross(link.yzw, i_quat.yzw));
  vec3 eye_local = turned(vec4(q.x, -q.yzw), -origin);
  vec2 cells = vec2(0);
  if (i_offset.z > 0.0) cells.x = i_offset.z * round(eye_local.x / i_offset.z);
  if (i_offset.w > 0.0) cells.y = i_offset.w * round(eye_local.y / i_offset.w);
  v_world = origin + turned(q, local + vec3(cells, 0));
  v_normal = turned(q, a_normal / i_size.xyz);
  v_local = local;
  v_texcoord = a_texcoord;
  v_rgba = i_rgba;
  v_behind = i_size.w == 0.0 && eye_local.z < 0.0 ? 1.0 : 0.0;
  if (v_behind > 0.0) v_rgba.a *= 0.3;  // a plane from behind
  v_material = i_material, v_scale = i_scale, v_size = i_size, v_offset = i_offset.xy;
  v_size.z = i_size.w == 3.0 ? i_pos.w : i_size.z;
  v_picked = u_picked.z > 0.0 && u_picked.x == i_number.x && u_picked.y == i_number.y ? 1.0 : 0.0;
  v_lit = vec3(0);
  if (i_size.w == 6.0) {
    vec3 normal = normalize(v_normal), sum = i_rgba.rgb * (i_material.x + u_ambient);
    for (int i = 0; i < u_lights; ++i) sum += light_of(i, v_world, normal, i_rgba.rgb, i_material);
    v_lit = clamp(sum, 0.0, 1.0);
  }
  v_number = uint(int(i_number.y) * u_geoms + int(i_number.z) + 1);
  gl_Position = u_projection * vec4(u_turn * v_world, 1);
}`;

const kFragmentShader = `#version 300 es
precision highp float;
precision highp int;
${kLight}
in vec3 v_world, v_normal, v_local;
in vec2 v_texcoord;
flat in vec4 v_rgba, v_material, v_scale, v_size;
flat in vec2 v_offset;
flat in float v_picked, v_behind;
in vec3 v_lit;
uniform int u_shadows;
uniform float u_behind;                    // 1: only planes from behind are drawn, 0: all others
uniform int u_textured;                    // 1: a picture, 2: a cube of six
uniform sampler2D u_texture;
uniform samplerCube u_cube;
uniform sampler2D u_image;                 // what a mirror shows, as large as the picture
uniform vec4 u_mirror;                     // geom + 1, or 0; reflectance; width and height of the picture, px
uniform vec4 u_above;                      // of a mirror's image: only what is above this plane (normal, height over the eye)
uniform vec3 u_mirror_normal;
uniform highp sampler2DArrayShadow u_shadow;  // depth as lights see it; a light's layer + 1 stands beside its ambient colour
uniform mat3 u_shadow_turn[3];
uniform mat4 u_shadow_projection[3];
uniform vec4 u_shadow_from[3];             // the eye from the light; size of a texel, m
flat in uint v_number;
uniform int u_geoms;
out vec4 colour;
vec2 around() {                            // once around a shape: MuJoCo's unit shapes (render_context.c)
  vec3 p = v_local / v_size.xyz;
  int shape = int(v_size.w);
  if (shape == 6) {
    vec3 a = abs(p);
    bool x_side = a.x >= a.y && a.x >= a.z, z_side = !x_side && a.z >= a.y;
    return vec2(0.5 + 0.5 * (x_side ? p.y : p.x), 0.5 - 0.5 * (z_side ? p.y : p.z));
  }
  float u = fract(atan(p.y, p.x) * 0.159154943);
  if (shape == 5) {
    if (abs(normalize(v_normal).z) > 2.0) return p.xy;
    return abs(p.z) > 0.9999 ? 0.5 + 0.5 * p.xy : vec2(u, 0.5 - 0.5 * p.z);
  }
  if (shape == 3) {
    float end = clamp(v_local.z, -v_size.z, v_size.z), over = v_local.z - end;
    float rise = atan(abs(over), length(v_local.xy)) * 0.636619772;
    return vec2(u, over > 0.0 ? 1.0 - rise : over < 0.0 ? rise : 0.5 - 0.5 * p.z);
  }
  return vec2(u, 0.5 - 0.318309886 * atan(p.z, length(p.xy)));
}
float lit(int layer, vec3 normal) {        // how much of a light arrives
  vec3 way = u_shadow_turn[layer] * (v_world + 1.5 * u_shadow_from[layer].w * normal + u_shadow_from[layer].xyz);
  vec4 at = u_shadow_projection[layer] * vec4(way, 1);
  vec3 p = 0.5 + 0.5 * at.xyz / at.w;
  if (at.w <= 0.0 || any(lessThan(p, vec3(0))) || any(greaterThan(p, vec3(1)))) return 1.0;
  return texture(u_shadow, vec4(p.xy, layer, p.z));
}
void main() {
  if (v_behind != u_behind) discard;
  if (u_above.w < 1e29 && dot(u_above.xyz, v_world) < u_above.w) discard;
  vec3 normal = normalize(v_normal), rgb = v_rgba.rgb;
  vec3 sum = rgb * (v_material.x + u_ambient), shadowed = vec3(0);
  if (v_size.w == 6.0 && u_shadows == 0) {
    sum = v_lit;
  } else {
    for (int i = 0; i < u_lights; ++i) {
      vec3 given = light_of(i, v_world, normal, rgb, v_material);
      int layer = int(u_light[6 * i + 3].w);
      if (layer == 0) sum += given;
      else shadowed += lit(layer - 1, normal) * min(given, 1.0);
    }
  }
  vec4 texel = vec4(1);
  int mapping = int(v_material.w);
  if (u_textured == 2) {
    texel = texture(u_cube, v_local * v_scale.xyz);
  } else if (u_textured == 1) {
    vec2 at = mapping == 1 ? v_texcoord : mapping == 2 ? around() : v_local.xy;
    texel = texture(u_texture, at * v_scale.xy + (mapping == 3 ? v_offset : vec2(0)));
  }
  colour = vec4(min(clamp(sum, 0.0, 1.0) + shadowed, 1.0) * texel.rgb, v_rgba.a * texel.a);
  if (u_mirror.x > 0.0 && (v_number - 1u) % uint(u_geoms) + 1u == uint(u_mirror.x) && dot(normal, u_mirror_normal) > 0.99)
    colour.rgb = min(colour.rgb + u_mirror.y * texture(u_image, gl_FragCoord.xy / u_mirror.zw).rgb, 1.0);
  colour.rgb = mix(colour.rgb, vec3(1.0, 0.55, 0.1), 0.35 * v_picked);
}`;

/** Numbers of instances instead of colours: environment * geoms + geom + 1, the lowest byte in red. */
const kNumberShader = `#version 300 es
precision highp float;
flat in uint v_number;
out vec4 colour;
void main() {
  colour = vec4(uvec4(v_number, v_number >> 8, v_number >> 16, 255u) & 255u) / 255.0;
}`;

const kSkyVertexShader = `#version 300 es
precision highp float;
uniform vec4 u_corners;                    // left, right, bottom, top at 1 m
uniform mat3 u_turn;
out vec3 v_way;
void main() {
  vec2 p = vec2(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0);
  vec2 side = mix(u_corners.xz, u_corners.yw, 0.5 + 0.5 * p);
  v_way = transpose(u_turn) * vec3(side, -1);
  gl_Position = vec4(p, 1, 1);
}`;

const kSkyFragmentShader = `#version 300 es
precision highp float;
in vec3 v_way;
uniform samplerCube u_cube;
uniform int u_textured;
out vec4 colour;
void main() {
  vec3 d = normalize(v_way);
  colour = u_textured == 2 ? vec4(texture(u_cube, vec3(d.x, d.z, -d.y)).rgb, 1)
                           : vec4(mix(vec3(0.16, 0.19, 0.25), vec3(0.42, 0.5, 0.6), smoothstep(-0.3, 0.6, d.z)), 1);
}`;

/**
 * The haze over a plane without end, before what is behind it (MuJoCo's `haze` in render_context.c): a cone between the
 * plane at the sky's foot and the eye's height, clear at both and dense between.
 */
const kHazeShader = `#version 300 es
precision highp float;
in vec3 v_way;
uniform vec3 u_normal, u_rgb, u_back;
uniform vec4 u_haze;                       // ratio, turn, height of the eye over the plane in units of reach, reach (m)
uniform vec2 u_range;                      // near, far
out vec4 colour;
void main() {
  float up = dot(v_way, u_normal);
  float flat_part = sqrt(max(dot(v_way, v_way) - up * up, 0.0)), down = -up / u_haze.z;
  float s = 1.0 / max(u_haze.x * down + flat_part, 1e-12), h = 1.0 - down * s;
  float alpha = h < u_haze.y ? h / u_haze.y : (1.0 - h) / (1.0 - u_haze.y);
  if (up >= 0.0 || h <= 0.0) discard;
  float along = -dot(v_way, u_back) * s * u_haze.w, n = u_range.x, f = u_range.y;
  gl_FragDepth = clamp(0.5 + 0.5 * ((f + n) / (f - n) - 2.0 * f * n / ((f - n) * along)), 0.0, 1.0);
  colour = vec4(u_rgb, clamp(alpha, 0.0, 1.0));
}`;
