// This file hides what differs between the versions of SimGrid. SimGrid 4 gave other names to what
// builds a platform, and completions to each kind of activity.
#pragma once

#include <simgrid/engine.h>  // version.h leans on what it includes
#include <simgrid/version.h>

#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace stepsim {

namespace sg4 = simgrid::s4u;

#if SIMGRID_VERSION_MAJOR >= 4
inline sg4::NetZone* add_zone(const char* name) {
  return sg4::Engine::get_instance()->get_netzone_root()->add_netzone_full(name);
}
inline sg4::Host* add_host(sg4::NetZone& zone, const std::string& name, const auto& speed) {
  return zone.add_host(name, speed);
}
inline sg4::Link* add_link(sg4::NetZone& zone, const std::string& name, double width) {
  return zone.add_link(name, width);
}
inline void add_route(sg4::NetZone& zone, const sg4::Host* from, const sg4::Host* to,
                      const std::vector<sg4::LinkInRoute>& route) {
  zone.add_route(from, to, route, false);
}
inline void on_completion(const auto& callback) {
  sg4::Exec::on_completion_cb(callback);
  sg4::Comm::on_completion_cb(callback);
}
#else
inline sg4::NetZone* add_zone(const char* name) {
  return sg4::create_full_zone(name);
}
inline sg4::Host* add_host(sg4::NetZone& zone, const std::string& name, const auto& speed) {
  return zone.create_host(name, speed);
}
inline sg4::Link* add_link(sg4::NetZone& zone, const std::string& name, double width) {
  return zone.create_link(name, width);
}
inline void add_route(sg4::NetZone& zone, const sg4::Host* from, const sg4::Host* to,
                      const std::vector<sg4::LinkInRoute>& route) {
  zone.add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
}
inline void on_completion(const auto& callback) {
  sg4::Activity::on_completion_cb(callback);
}
#endif

}  // namespace stepsim
