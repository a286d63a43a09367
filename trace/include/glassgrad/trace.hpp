#pragma once
// All of trace/.

#include <glassgrad/trace/document.hpp>
#include <glassgrad/trace/json.hpp>
#include <glassgrad/trace/profile.hpp>
#include <glassgrad/trace/recorder.hpp>
